"""Ways in and out: the command line, notebook panels, reports, telemetry. They are independent of each other.

cli              docmind-lab
panels           interactive views in notebooks; they show reports
reports          a study as one page
telemetry        spans and metrics of runs
data_dictionary  docs/data-dictionary.md
diagnosis        whether versions, settings and endpoints are in order
"""
