"""Figures, the command line, notebook panels, reports and telemetry.

plots      figures
cli        docmind-lab
panels     interactive views in notebooks; they show reports
reports    a study as one page
telemetry  spans of runs
diagnosis  whether this machine is in order
"""
