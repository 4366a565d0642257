"""Figures, the command line, notebook panels, reports and telemetry.

plots            figures
cli              docmind-lab
panels           interactive views in notebooks; they show reports
reports          a study as one page
telemetry        spans and metrics of runs
data_dictionary  docs/data-dictionary.md
diagnosis        whether versions, settings and endpoints are in order
program_diagnosis  whether a program finds the simulated services, and answers
"""
