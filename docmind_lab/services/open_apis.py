"""What simulated open services answer, each in its own shape: weather, packages, places, IP addresses, money.

Values belong to what is asked for: the same place has the same position and the same weather in every run.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from docmind_lab.services.endpoint_request import EndpointRequest, share_of

_DAY_S: Final = 86_400
_NOON: Final = 1_767_268_800
"""Noon of 2026-01-01 in UTC, in seconds since 1970."""
_RATES: Final = {"USD": 1.0, "EUR": 0.92, "GBP": 0.79, "JPY": 151.0, "INR": 83.2, "CAD": 1.36, "AUD": 1.52, "CHF": 0.9}
_HOURS: Final = 24
_MOST_DAYS: Final = 92


def _place(request: EndpointRequest) -> tuple[str, float, float]:
    """Return the name of the place that is asked for, and its latitude and longitude in degrees."""
    given = request.fields
    name = next((str(given[key]) for key in ("q", "name", "city", "location", "zip", "id") if given.get(key)), "")
    latitude = _number(given.get("lat", given.get("latitude")), round(120 * share_of(name, "lat") - 60, 4))
    longitude = _number(given.get("lon", given.get("longitude")), round(360 * share_of(name, "lon") - 180, 4))
    return name.partition(",")[0] or f"{latitude:g}, {longitude:g}", latitude, longitude


def _number(given: Any, default: float) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        return default


def _degrees(place: str, when: object = 0) -> float:
    """Return the temperature at a place, in degrees Celsius."""
    return round(5 + 25 * share_of(place, "degrees", when), 1)


# ---- OpenWeather


def openweather(request: EndpointRequest) -> Any:
    """Return the weather, a forecast, the air or places, as api.openweathermap.org does."""
    name, latitude, longitude = _place(request)
    where = {"name": name, "lat": latitude, "lon": longitude, "country": "XX", "state": ""}
    if request.path.startswith("/geo/"):
        return where if request.path.endswith("/zip") else [where]
    now = _openweather_at(request, name, 0)
    position = {"coord": {"lon": longitude, "lat": latitude}}
    if "air_pollution" in request.path:
        parts = {"co": 230.0, "no": 0.1, "no2": 9.2, "o3": 60.1, "so2": 1.2, "pm2_5": 6.5, "pm10": 9.1, "nh3": 0.6}
        return {**position, "list": [{"main": {"aqi": 2}, "components": parts, "dt": _NOON}]}
    if "forecast" in request.path:
        steps = [_openweather_at(request, name, step) for step in range(8)]
        city = {"id": 1, "name": name, "country": "XX", "timezone": 0, **position}
        return {"cod": "200", "message": 0, "cnt": len(steps), "list": steps, "city": city}
    if "onecall" in request.path:
        return {"lat": latitude, "lon": longitude, "timezone": "UTC", "current": {**now["main"], **now}}
    country = {"type": 1, "id": 1, "country": "XX", "sunrise": _NOON - 18_000, "sunset": _NOON + 18_000}
    return {**position, **now, "base": "stations", "sys": country, "timezone": 0, "id": 1, "name": name, "cod": 200}


def _openweather_at(request: EndpointRequest, place: str, step: int) -> dict[str, Any]:
    celsius = _degrees(place, step)
    units = request.fields.get("units", "standard")
    kind = {"metric": celsius, "imperial": celsius * 1.8 + 32}.get(str(units), celsius + 273.15)
    heat = {"temp": kind, "feels_like": kind, "temp_min": kind - 1, "temp_max": kind + 1}
    at_s = _NOON + 3 * 3600 * step
    return {
        "weather": [{"id": 800, "main": "Clear", "description": "clear sky", "icon": "01d"}],
        "main": {**{key: round(value, 2) for key, value in heat.items()}, "pressure": 1015, "humidity": 55},
        "visibility": 10_000,
        "wind": {"speed": 3.6, "deg": 220},
        "clouds": {"all": 0},
        "dt": at_s,
        "dt_txt": f"2026-01-{1 + (12 + 3 * step) // 24:02} {(12 + 3 * step) % 24:02}:00:00",
    }


# ---- other weather


def weatherapi(request: EndpointRequest) -> Any:
    """Return the weather and a forecast as api.weatherapi.com does."""
    name, latitude, longitude = _place(request)
    condition = {"text": "Sunny", "icon": "//cdn.weatherapi.com/weather/64x64/day/113.png", "code": 1000}

    def heat(when: object) -> dict[str, float]:
        celsius = _degrees(name, when)
        return {"temp_c": celsius, "temp_f": round(celsius * 1.8 + 32, 1)}

    current = {
        **heat(0),
        "condition": condition,
        "wind_kph": 13.0,
        "humidity": 55,
        "cloud": 0,
        "feelslike_c": heat(0)["temp_c"],
    }
    days = [
        {
            "date": f"2026-01-{day + 1:02}",
            "day": {
                "maxtemp_c": _degrees(name, day) + 3,
                "mintemp_c": _degrees(name, day) - 3,
                "avgtemp_c": _degrees(name, day),
                "daily_chance_of_rain": 10,
                "condition": condition,
            },
            "astro": {"sunrise": "07:30 AM", "sunset": "04:30 PM"},
            "hour": [{"time": f"2026-01-{day + 1:02} 12:00", **heat(day), "condition": condition}],
        }
        for day in range(max(1, min(14, int(_number(request.fields.get("days"), 1)))))
    ]
    location = {"name": name, "region": "", "country": "Example", "lat": latitude, "lon": longitude, "tz_id": "UTC"}
    found = {"location": {**location, "localtime": "2026-01-01 12:00"}, "current": current}
    return {**found, "forecast": {"forecastday": days}} if "forecast" in request.path else found


def open_meteo(request: EndpointRequest) -> Any:
    """Return the values that are asked for as api.open-meteo.com does."""
    name, latitude, longitude = _place(request)
    given = request.fields
    units = {"time": "iso8601"}
    made: dict[str, Any] = {"latitude": latitude, "longitude": longitude, "elevation": 38.0, "timezone": "GMT"}
    if str(given.get("current_weather", "")).lower() == "true":
        now = {"time": "2026-01-01T12:00", "temperature": _degrees(name), "windspeed": 9.4, "winddirection": 220}
        made["current_weather"] = {**now, "is_day": 1, "weathercode": 0}
    days = _meteo_days(given)
    for part, times in (
        ("current", ()),
        ("hourly", [f"{day}T{hour:02}:00" for day in days for hour in range(_HOURS)]),
        ("daily", days),
    ):
        names = [each for each in str(given.get(part, "")).split(",") if each]
        if not names:
            continue
        made[f"{part}_units"] = {**units, **{each: "°C" if "temperature" in each else "" for each in names}}
        if part == "current":
            values: dict[str, Any] = {"time": "2026-01-01T12:00", "interval": 900}
            values |= {each: _meteo_value(name, each, 0) for each in names}
        else:
            values = {"time": list(times)}
            values |= {each: [_meteo_value(name, each, when) for when in times] for each in names}
        made[part] = values
    return made


def _meteo_days(given: Mapping[str, Any]) -> list[str]:
    """Return the days that are asked for, at most 92: from the one to the other, or a week from New Year on."""
    try:
        first = date.fromisoformat(str(given["start_date"]))
        number = (date.fromisoformat(str(given["end_date"])) - first).days + 1
    except (KeyError, ValueError):
        first, number = date(2026, 1, 1), min(16, int(_number(given.get("forecast_days"), 7)))
    return [str(first + timedelta(days=day)) for day in range(max(1, min(_MOST_DAYS, number)))]


def _meteo_value(place: str, name: str, when: object) -> float:
    if "temperature" in name:
        return _degrees(place, when)
    return 0 if "code" in name else round(100 * share_of(place, name, when), 1)


def open_meteo_places(request: EndpointRequest) -> Any:
    """Return places as geocoding-api.open-meteo.com does."""
    name, latitude, longitude = _place(request)
    place = {"id": 1, "name": name, "latitude": latitude, "longitude": longitude, "country": "Example"}
    return {
        "results": [{**place, "country_code": "XX", "timezone": "GMT", "elevation": 38.0}],
        "generationtime_ms": 0.5,
    }


def weather_gov(request: EndpointRequest) -> Any:
    """Return a point, a forecast or alerts as api.weather.gov does."""
    if request.path.startswith("/points/"):
        grid = f"https://{request.host}/gridpoints/LAB/1,1"
        return {
            "properties": {
                "gridId": "LAB",
                "gridX": 1,
                "gridY": 1,
                "forecast": f"{grid}/forecast",
                "forecastHourly": f"{grid}/forecast/hourly",
            }
        }
    if request.path.startswith("/alerts"):
        area = request.query.get("area", request.path.rpartition("/")[2])
        alert = {
            "event": "Wind Advisory",
            "areaDesc": area,
            "severity": "Moderate",
            "status": "Actual",
            "headline": f"Wind Advisory for {area}",
            "description": f"Strong winds are expected in {area}.",
            "instruction": "Secure what the wind can carry off.",
        }
        return {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": alert}]}
    periods = [
        {
            "number": number + 1,
            "name": name,
            "startTime": f"2026-01-01T{6 + 6 * number:02}:00:00+00:00",
            "isDaytime": number % 2 == 0,
            "temperature": round(_degrees(request.path, number) * 1.8 + 32),
            "temperatureUnit": "F",
            "windSpeed": "8 mph",
            "windDirection": "SW",
            "shortForecast": "Sunny",
            "detailedForecast": "Sunny, with a light wind from the southwest.",
        }
        for number, name in enumerate(("Today", "Tonight", "Tomorrow"))
    ]
    return {"properties": {"units": "us", "periods": periods}}


def wttr(request: EndpointRequest) -> Any:
    """Return the weather as wttr.in does: one line of text, or JSON with format=j1."""
    place = request.path.strip("/").replace("+", " ") or "here"
    celsius = round(_degrees(place))
    if request.query.get("format", "") not in ("j1", "j2"):
        return f"{place}: ☀️  +{celsius}°C\n"
    now = {"temp_C": str(celsius), "temp_F": str(round(celsius * 1.8 + 32)), "FeelsLikeC": str(celsius)}
    now |= {"humidity": "55", "windspeedKmph": "13", "weatherDesc": [{"value": "Sunny"}]}  # type: ignore[dict-item]
    area = {"areaName": [{"value": place}], "country": [{"value": "Example"}]}
    day = {"date": "2026-01-01", "avgtempC": str(celsius), "maxtempC": str(celsius + 3), "mintempC": str(celsius - 3)}
    return {"current_condition": [now], "nearest_area": [area], "weather": [day]}


# ---- packages and their vulnerabilities


def python_package(request: EndpointRequest) -> Any:
    """Return a package as pypi.org's /pypi/NAME/json does."""
    name, version = _package(request.path.removeprefix("/pypi/").removesuffix("/json"))
    file = {
        "filename": f"{name}-{version}-py3-none-any.whl",
        "packagetype": "bdist_wheel",
        "upload_time": "2026-01-01T12:00:00",
        "upload_time_iso_8601": "2026-01-01T12:00:00.000000Z",
        "url": f"https://www.example.com/{name}-{version}-py3-none-any.whl",
        "yanked": False,
    }
    about: dict[str, Any] = {
        "name": name,
        "version": version,
        "summary": f"What {name} does",
        "license": "MIT",
        "author": "Ada Example",
        "home_page": "https://www.example.com/",
        "project_urls": {"Homepage": "https://www.example.com/"},
        "classifiers": [],
        "requires_dist": None,
        "requires_python": ">=3.9",
        "yanked": False,
    }
    return {"info": about, "releases": {version: [file]}, "urls": [file], "vulnerabilities": [], "last_serial": 1}


def node_package(request: EndpointRequest) -> Any:
    """Return a package, or one version of it, as registry.npmjs.org does."""
    path = request.path.strip("/")
    name, version = _package(path)
    about = {"name": name, "version": version, "description": f"What {name} does", "license": "MIT"}
    if path != name:
        return about
    times = {"created": "2026-01-01T12:00:00.000Z", version: "2026-01-01T12:00:00.000Z"}
    return {**about, "dist-tags": {"latest": version}, "versions": {version: about}, "time": times}


def _package(path: str) -> tuple[str, str]:
    """Return the name and the version in a path; a version that is not there belongs to the name."""
    found = re.fullmatch(r"((?:@[^/]+/)?[^/]+)(?:/([^/]+))?", path)
    name, version = (found[1], found[2]) if found else (path, None)
    return name, version if version and version != "latest" else f"{1 + int(5 * share_of(name, 'version'))}.0.1"


def vulnerabilities(request: EndpointRequest) -> Any:
    """Return that no vulnerability is known, as api.osv.dev does."""
    asked = request.json.get("queries") if isinstance(request.json, dict) else None
    return {"results": [{} for _ in asked]} if isinstance(asked, list) else {}


# ---- places, addresses, money


def nominatim(request: EndpointRequest) -> Any:
    """Return places as nominatim.openstreetmap.org does."""
    name, latitude, longitude = _place(request)
    place = {
        "place_id": 1,
        "lat": str(latitude),
        "lon": str(longitude),
        "display_name": f"{name}, Example",
        "name": name,
    }
    if request.path.startswith("/reverse"):
        return {**place, "address": {"city": name, "country": "Example", "country_code": "xx"}}
    return [{**place, "type": "city", "class": "place", "importance": 0.7}]


def own_address(request: EndpointRequest) -> Any:
    """Return where a client is, as ipinfo.io, ip-api.com and api.ipify.org do."""
    address = "192.0.2.7"
    if "ipify" in request.host:
        return {"ip": address} if request.query.get("format") == "json" else address
    place = {"city": "Example City", "region": "Example Region", "country": "XX", "timezone": "UTC"}
    if "ip-api" in request.host:
        found = {"status": "success", "query": address, "lat": 51.5, "lon": -0.12, **place}
        return {**found, "country": "Example", "countryCode": "XX", "regionName": "Example Region"}
    return {"ip": address, "loc": "51.5000,-0.1200", "org": "Example Net", **place}


def exchange_rates(request: EndpointRequest) -> Any:
    """Return rates of currencies as frankfurter, open.er-api.com and exchangerate-api.com do."""
    given = request.fields
    codes = re.findall(r"\b[A-Z]{3}\b", request.path)
    base = str(
        given.get("from", given.get("base", codes[0] if codes else "EUR" if "frankfurter" in request.host else "USD"))
    )
    wanted = str(given.get("to", given.get("symbols", ",".join(codes[1:2])))).upper()
    amount = _number(given.get("amount"), 1.0)
    names = [name for name in wanted.split(",") if name] or [name for name in _RATES if name != base]
    rates = {name: round(amount * _rate(name) / _rate(base.upper()), 4) for name in names}
    day = re.search(r"\d{4}-\d\d-\d\d", request.path)
    return {
        "result": "success",
        "amount": amount,
        "base": base,
        "base_code": base,
        "date": day[0] if day else "2026-01-01",
        "rates": rates,
        "conversion_rates": rates,
        "conversion_rate": next(iter(rates.values())),
    }


def _rate(name: str) -> float:
    return _RATES.get(name, round(0.5 + 9 * share_of(name, "rate"), 3))


def alpha_vantage(request: EndpointRequest) -> Any:
    """Return prices of a share as www.alphavantage.co does."""
    symbol = str(request.fields.get("symbol", "")) or "SHARE"

    def price(day: int) -> str:
        return f"{50 + 200 * share_of(symbol, 'price') + day:.4f}"

    if request.fields.get("function") == "GLOBAL_QUOTE":
        quote = {"01. symbol": symbol, "05. price": price(0), "06. volume": "1000000"}
        return {"Global Quote": {**quote, "07. latest trading day": "2026-01-02", "10. change percent": "0.5000%"}}
    names = ("1. open", "2. high", "3. low", "4. close")
    series = {
        f"2026-01-{day + 1:02}": {**dict.fromkeys(names, price(day)), "5. volume": "1000000"}
        for day in range(4, -1, -1)
    }
    return {"Meta Data": {"2. Symbol": symbol}, "Time Series (Daily)": series}


# ---- what public scripts ask beside


_PIXEL: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def drawing(request: EndpointRequest) -> Any:
    """Return a picture of one pixel, for a graph that is drawn as mermaid.ink does."""
    return _PIXEL


def coin_prices(request: EndpointRequest) -> Any:
    """Return prices of coins as api.coingecko.com does."""
    coins, units = (str(request.query.get(key, "")).split(",") for key in ("ids", "vs_currencies"))
    return {coin: {unit: round(1 + 1000 * share_of(coin, unit), 2) for unit in units} for coin in coins}


def countries(request: EndpointRequest) -> Any:
    """Return a country as restcountries.com does."""
    name = request.path.rstrip("/").rpartition("/")[2].replace("%20", " ").capitalize()
    people = round(1e8 * share_of(name))
    names = {"common": name, "official": f"Republic of {name}"}
    place = {"region": "Region", "subregion": "Subregion", "latlng": [10.0, 10.0], "capital": [f"{name} City"]}
    money = {"COI": {"name": "coin", "symbol": "¤"}}
    return [{"name": names, **place, "population": people, "currencies": money, "languages": {"lan": "Language"}}]
