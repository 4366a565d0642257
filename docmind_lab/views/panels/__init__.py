"""Interactive panels for notebooks; needs the extra "notebooks".

    dl.tune()               how long should the decision timeout be: controls, and what they lead to

panel_settings.py                 the settings of a panel
engine.py                         requests become runs, in other processes; newest.py its thread
panel_run.py                      a request as it stands, its tables and its status
page.py                           pictures, with words for who cannot see them; panel.css its style, panel.js its names
panel_controls.py, study_tabs.py  the widgets
tune_panel.py                     the panel

Views are thin: what they show comes from public functions over a study's tables.
"""

try:
    import ipywidgets  # noqa: F401 - looked for before the modules that need it, to say what is missing
except ModuleNotFoundError as error:
    from docmind_lab.core.errors import ConfigurationError

    raise ConfigurationError("panels need ipywidgets: install docmind_lab[notebooks]") from error

from docmind_lab.views.panels.tune_panel import TunePanel, tune

__all__ = ["TunePanel", "tune"]
