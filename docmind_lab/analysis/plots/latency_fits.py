"""Figure: how well a latency profile fits the measurements, and where it does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, PercentFormatter

from docmind_lab.analysis.latency.durations import DurationFit
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.analysis.plots import look
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_bytes, write_or_refuse

# Two of the colour-blind-safe palette; no alternative is meant here.
_FIT, _BAD = look.COLOURS["cooperative"], look.COLOURS["hard_timeout"]
_NAMES: Final = {
    "first_token_s": "time to the first token",
    "inter_token_s": "time for each token after it",
    "retrieval_s": "time of a search",
}
_SHADED: Final = 0.16
_SIZE_IN: Final = (9.0, 5.0)


def latency_fit_frame(profile: LatencyProfile, part: str = "first_token_s") -> pd.DataFrame:
    """Return one row for each level of quantiles that the data show.

    Columns: level, observed_s (Kaplan–Meier quantile), low, high (95 % pointwise band of the share at
    it), fitted_s (the family's quantile; NaN without a family), profile_s (what the profile draws), off (fitted over
    observed, − 1), outside (the family's share at observed_s lies outside of the band: there it fits badly).
    Raises: ConfigurationError for a profile, or a part of it, that was not fitted.
    """
    fit = _evidence(profile, part)
    levels, observed_s = np.array(fit.levels), np.array(fit.empirical_s)
    fitted_s = np.array(fit.fitted_s) if fit.family else np.full(len(levels), np.nan)
    low, high = np.array(fit.low), np.array(fit.high)
    # The family's share at an observed duration lies between its quantiles; beyond them it is at its end.
    model = np.interp(observed_s, fitted_s, levels) if fit.family else np.full(len(levels), np.nan)
    # At the edges the band is of one row, and says nothing of the family.
    inner = (levels > 0) & (levels < levels[-1])
    outside = inner & ((model < low) | (model > high))
    # Between two of the levels the observed share rises by their distance at most: what is above that at the end of a
    # stretch was above the band within it.
    outside[:-1] |= inner[:-1] & (model[1:] > high[:-1] + np.diff(levels))
    off = np.divide(fitted_s, observed_s, out=np.full(len(levels), np.nan), where=observed_s > 0) - 1
    return pd.DataFrame(
        {
            "level": levels,
            "observed_s": observed_s,
            "low": low,
            "high": high,
            "fitted_s": fitted_s,
            "profile_s": [getattr(profile, part).at(level) for level in fit.levels],
            "off": off,
            "outside": outside,
        }
    )


def latency_fit(profile: LatencyProfile, part: str = "first_token_s", *, ax: Axes | None = None) -> Axes:
    """Plot the observed share of durations and its band, the family, and what the profile draws.

    Shaded in orange is where the family lies outside of the 95 % band: there it fits badly. Past the dotted line
    nothing was observed, and what the profile holds there is an extrapolation. Seconds are on a logarithmic scale.
    Raises: ConfigurationError for a profile, or a part of it, that was not fitted.
    """
    fit = _evidence(profile, part)
    frame = latency_fit_frame(profile, part)
    if ax is None:
        ax = look.new_axes(*_SIZE_IN)
    shown = frame[frame["observed_s"] > 0]
    _draw_misfits(ax, shown)
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
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))
    ax.grid(axis="y", color=look.RULE, linewidth=0.5, alpha=0.5)
    ax.set_xlabel("seconds (logarithmic scale)")
    ax.set_ylabel("calls that took no longer (%)")
    look.legend_below(ax, _legend(fit, bool(frame["outside"].any())), columns=2)
    look.style(ax, f"{profile.name}: {_NAMES[part]}", _context(fit, frame))
    return ax


def save_latency_fit(profile: LatencyProfile, path: str | os.PathLike[str], part: str = "first_token_s") -> Path:
    """Write the figure to a PNG file without pyplot, and return its path.

    Raises: ConfigurationError as `latency_fit`, and when it cannot be written.
    """
    return write_or_refuse(Path(path), as_bytes(look.png_of(latency_fit(profile, part, ax=look.blank_axes(*_SIZE_IN)))))


def _evidence(profile: LatencyProfile, part: str) -> DurationFit:
    fits = {} if profile.evidence is None else profile.evidence.fits
    if part not in fits:
        known = ", ".join(fits) or "none: LatencyProfile.fit makes profiles with evidence, and scaling drops it"
        raise ConfigurationError(f"profile {profile.name!r} has no observed durations for {part!r}; there are {known}")
    return fits[part]


def _draw_misfits(ax: Axes, frame: pd.DataFrame) -> None:
    outside = frame["outside"].to_numpy(dtype="int64")
    edges = np.flatnonzero(np.diff(outside, prepend=0, append=0))
    at_s = frame["observed_s"].to_numpy()
    for begun, ended in zip(edges[::2], edges[1::2], strict=True):
        left, right = at_s[begun], at_s[min(ended, len(at_s) - 1)]
        ax.axvspan(left, right, color=_BAD, alpha=_SHADED, linewidth=0, zorder=1, gid=f"misfit:{left:g}")


def _draw_scale(ax: Axes, low_s: float, high_s: float) -> None:
    ax.set_xscale("log")
    ax.set_xlim(low_s / 1.1, max(high_s, low_s * 1.5) * 1.1)
    decades = np.arange(np.floor(np.log10(low_s)) - 1, np.ceil(np.log10(high_s)) + 1)
    ax.xaxis.set_major_locator(FixedLocator([step * 10.0**decade for decade in decades for step in (1, 2, 5)]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: look.seconds_text(float(value))))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _legend(fit: DurationFit, misfits: bool) -> list[Any]:
    handles: list[Any] = [
        Line2D([], [], color=look.INK, linewidth=1.1, label="observed (Kaplan–Meier)"),
        Patch(color=look.RULE, alpha=0.35, label="95 % pointwise band, log-log"),
    ]
    if fit.family:
        label = f"{fit.family}, censored maximum likelihood"
        handles.append(Line2D([], [], color=_FIT, linewidth=1.8, linestyle=(0, (6, 2)), label=label))
    label = f"what the profile draws ({fit.used})"
    handles.append(Line2D([], [], color=_BAD, linestyle="none", marker="o", markersize=4, label=label))
    if misfits:
        handles.append(Patch(color=_BAD, alpha=_SHADED, label="the family lies outside of the band: it fits badly"))
    return handles


def _context(fit: DurationFit, frame: pd.DataFrame) -> str:
    parts = [f"{fit.observed} durations observed, {fit.cut} cut"]
    if fit.family:
        common = frame[(frame["level"] >= 0.05) & (frame["level"] <= 0.95)]["off"].abs()
        parts.append(f"{fit.family}: quantiles up to {common.max():.1%} off between p5 and p95")
        verdict = "no farther than chance" if fit.fits else f"chance allows {fit.allowed:.1%}"
        parts.append(
            f"largest distance {fit.distance:.1%} of the calls at {look.seconds_text(fit.distance_at_s)} ({verdict})"
        )
    if fit.known_to < 1:
        parts.append(f"known up to p{100 * fit.known_to:.4g}")
    return " · ".join(parts)
