"""Figure: how well a latency profile fits the measurements, and where it does not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.latency.quantiles import DurationFit
from docmind_lab.views.plots import look

# Two of the colour-blind-safe palette; no alternative is meant here.
_FIT, _BAD = look.COLOURS["cooperative"], look.COLOURS["hard_timeout"]
_NAMES: Final = {
    "first_token_s": "time to the first token",
    "inter_token_s": "time for each token after it",
    "retrieval_s": "time of a search",
}


def latency_fit_frame(profile: LatencyProfile, part: str = "first_token_s") -> pd.DataFrame:
    """Return one row for each level of quantiles that the data show.

    Columns: level, observed_s (Kaplan–Meier quantile), low, high (95 % pointwise band of the share at
    it), fitted_s (the family's quantile; NaN without a family), profile_s (what the profile draws).
    Raises: ConfigurationError for a profile, or a part of it, that was not fitted.
    """
    fit = _evidence(profile, part)
    return pd.DataFrame(
        {
            "level": fit.levels,
            "observed_s": fit.empirical_s,
            "low": fit.low,
            "high": fit.high,
            "fitted_s": fit.fitted_s if fit.family else np.nan,
            "profile_s": [getattr(profile, part).at(level) for level in fit.levels],
        }
    )


def latency_fit(profile: LatencyProfile, part: str = "first_token_s", *, ax: look.Canvas = None) -> Axes:
    """Plot the observed share of durations and its band, the family, and what the profile draws.

    Past the dotted line nothing was observed, and what the profile holds there is an extrapolation. Seconds are on a
    logarithmic scale.
    Raises: ConfigurationError for a profile, or a part of it, that was not fitted.
    """
    fit = _evidence(profile, part)
    frame = latency_fit_frame(profile, part)
    ax = look.axes_for(ax, 9.0, 5.0)
    shown = frame[frame["observed_s"] > 0]
    steps: dict[str, Any] = {"step": "post", "linewidth": 0, "zorder": 1.5}
    ax.fill_between(shown["observed_s"], shown["low"], shown["high"], color=look.RULE, alpha=0.35, gid="band", **steps)
    ax.step(shown["observed_s"], shown["level"], where="post", color=look.INK, linewidth=1.1, zorder=3, gid="observed")
    if fit.family:
        fitted = frame[frame["fitted_s"] > 0]
        style: dict[str, Any] = {"color": _FIT, "linewidth": 1.8, "linestyle": (0, (6, 2))}
        ax.plot(fitted["fitted_s"], fitted["level"], zorder=4, gid="fitted", **style)
    table = getattr(profile, part)
    drawn = [(value_s, level) for level, value_s in zip(table.levels, table.values_s, strict=True) if value_s > 0]
    at_s, levels = zip(*drawn, strict=True) if drawn else ((), ())
    ax.plot(at_s, levels, color=_BAD, linestyle="none", marker="o", markersize=2.6, zorder=5, gid="profile")
    if drawn:
        _draw_scale(ax, min(at_s[0], float(shown["observed_s"].min())), at_s[-1])
    if fit.known_to < 1:
        ax.axvline(fit.known_to_s, color=look.INK, linewidth=1.0, linestyle=":", zorder=2, gid="known")
        ax.axvspan(fit.known_to_s, ax.get_xlim()[1], color=look.BAND, linewidth=0, zorder=0)
        look.note(ax, "nothing observed →", (fit.known_to_s, 0.0), (4.0, 9.0), x_in="data")
    ax.set_ylim(-0.02, 1.02)
    look.percent_ticks(ax)
    look.faint_grid(ax, "y")
    ax.set_xlabel("seconds (logarithmic scale)")
    ax.set_ylabel("calls that took no longer (%)")
    look.legend_below(ax, _legend(fit), columns=2)
    look.style(ax, f"{profile.name}: {_NAMES[part]}", _context(fit))
    return ax


def _evidence(profile: LatencyProfile, part: str) -> DurationFit:
    fits = profile.evidence or {}
    if part not in fits:
        known = ", ".join(fits) or "none: LatencyProfile.fit makes profiles with evidence, and scaling drops it"
        raise ConfigurationError(f"profile {profile.name!r} has no observed durations for {part!r}; there are {known}")
    return fits[part]


def _draw_scale(ax: Axes, low_s: float, high_s: float) -> None:
    ax.set_xscale("log")
    ax.set_xlim(low_s / 1.1, max(high_s, low_s * 1.5) * 1.1)
    decades = np.arange(np.floor(np.log10(low_s)) - 1, np.ceil(np.log10(high_s)) + 1)
    look.fixed_ticks(ax, [step * 10.0**decade for decade in decades for step in (1, 2, 5)], look.seconds_text)


def _legend(fit: DurationFit) -> list[Any]:
    handles: list[Any] = [
        look.line_key("observed (Kaplan–Meier)", color=look.INK, linewidth=1.1),
        Patch(color=look.RULE, alpha=0.35, label="95 % pointwise band, log-log"),
    ]
    if fit.family:
        label = f"{fit.family}, censored maximum likelihood"
        handles.append(look.line_key(label, color=_FIT, linewidth=1.8, linestyle=(0, (6, 2))))
    return [*handles, look.legend_key(f"what the profile draws ({fit.used})", color=_BAD, marker="o", markersize=4)]


def _context(fit: DurationFit) -> str:
    parts = [f"{fit.observed} durations observed, {fit.cut} cut"]
    if fit.family:
        verdict = "no farther than chance" if fit.fits else f"fits badly: chance allows {fit.allowed:.1%}"
        where = f"{fit.distance:.1%} of the calls at {look.seconds_text(fit.distance_at_s)}"
        parts.append(f"{fit.family}: largest distance {where} ({verdict})")
    if fit.known_to < 1:
        parts.append(f"known up to p{100 * fit.known_to:.4g}")
    return " · ".join(parts)
