"""Interactive panels for notebooks; needs the extra "notebooks".

    dl.tune(system)         how long should the decision timeout be: controls, and what they lead to

panel_settings.py           the settings of a panel: the comparison that they mean, and its controls
engine.py                   requests become runs, in other processes, the newest first
panel_run.py                a request as it stands, its tables and its status
page.py                     the views of a study as HTML
tune_panel.py               the panel: its state, which panel.js draws and panel.css styles

Views are thin: what they show comes from public functions over a study's tables.
"""

try:
    import anywidget  # noqa: F401 - looked for before the module that needs it, to say what is missing
except ModuleNotFoundError as error:
    from docmind_lab.core.errors import ConfigurationError

    raise ConfigurationError("panels need anywidget: install docmind_lab[notebooks]") from error

from docmind_lab.views.panels.tune_panel import TunePanel, tune

__all__ = ["TunePanel", "tune"]
