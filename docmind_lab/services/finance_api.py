"""What simulated Yahoo Finance answers: prices, what is known of a company, a search. Values belong to the symbol."""

from __future__ import annotations

from typing import Any, Final

from docmind_lab.services.endpoint_request import EndpointRequest, EndpointResponse, share_of

_DAY_S: Final = 86_400
_OPENING: Final = 1_767_364_200
"""Half past nine in New York on 2 January 2026, in seconds since 1970; the last day of a chart begins then."""
_SESSION_S: Final = 23_400
_OFFSET_S: Final = -18_000
_DAYS: Final = {"1d": 1, "5d": 5, "1mo": 22, "3mo": 64, "6mo": 126, "ytd": 5, "1y": 252, "2y": 504, "max": 504}
_KINDS: Final = frozenset({"getcrumb", "chart", "quoteSummary", "quote", "timeseries", "search"})
_WEEKEND: Final = (2, 3)
"""Days since 1970 modulo seven, of a Saturday and a Sunday."""


def yahoo(request: EndpointRequest) -> Any:
    """Return what query1 and query2.finance.yahoo.com do for charts, quotes, facts and searches; else nothing."""
    parts = request.path.strip("/").split("/")
    symbol = parts[-1].upper()
    match next((part for part in parts if part in _KINDS), ""):
        case "getcrumb":
            return EndpointResponse("crumb", headers={"content-type": "text/plain"})
        case "chart":
            return {"chart": {"result": [_chart(symbol, request)], "error": None}}
        case "quoteSummary":
            known = _modules(symbol)
            modules = request.query.get("modules", "").split(",")
            return {"quoteSummary": {"result": [{name: known.get(name, {}) for name in modules}], "error": None}}
        case "quote":
            symbols = str(request.query.get("symbols", symbol)).upper().split(",")
            return {"quoteResponse": {"result": [_quote(each) for each in symbols], "error": None}}
        case "search" | "lookup":
            return _search(str(request.query.get("q", request.query.get("query", "SHARE"))))
    return {"finance": {"result": [], "error": None}}


def _search(asked: str) -> dict[str, Any]:
    symbol = "".join(character for character in asked.upper() if character.isalpha())[:4] or "SHRE"
    found = {"symbol": symbol, "shortname": asked, "quoteType": "EQUITY", "exchange": "NMS", "isYahooFinance": True}
    return {"count": 1, "quotes": [found], "news": [_news(symbol)], "lists": [], "researchReports": []}


def _price(symbol: str, day: int) -> float:
    """Return the closing price of a day: around a level of the symbol's own, by up to a twentieth."""
    return round((20 + 200 * share_of(symbol)) * (0.95 + 0.1 * share_of(symbol, day)), 2)


def _days(request: EndpointRequest) -> list[int]:
    """Return the days since 1970 that are asked for, the last 504 at the most, without weekends."""
    last = _OPENING // _DAY_S
    begun, ended = request.query.get("period1", ""), request.query.get("period2", "")
    if begun.lstrip("-").isdecimal() and ended.isdecimal():
        last = int(ended) // _DAY_S
        count = max(1, last - int(begun) // _DAY_S)
        days = [day for day in range(last - min(count, 730), last) if day % 7 not in _WEEKEND]
        return days[-504:] or [last - 1]
    count = _DAYS.get(request.query.get("range", "1mo"), 22)
    days = [day for day in range(last - 2 * count - 7, last + 1) if day % 7 not in _WEEKEND]
    return days[-count:]


def _chart(symbol: str, request: EndpointRequest) -> dict[str, Any]:
    days = _days(request)
    closes = [_price(symbol, day) for day in days]
    begins = [day * _DAY_S + _OPENING % _DAY_S for day in days]
    period = {"timezone": "EST", "start": begins[-1], "end": begins[-1] + _SESSION_S, "gmtoffset": _OFFSET_S}
    meta = {
        "symbol": symbol,
        "currency": "USD",
        "exchangeName": "NMS",
        "fullExchangeName": "NasdaqGS",
        "instrumentType": "EQUITY",
        "longName": f"{symbol.title()} Example Inc.",
        "shortName": symbol.title(),
        "firstTradeDate": 345_479_400,
        "regularMarketTime": begins[-1],
        "gmtoffset": _OFFSET_S,
        "timezone": "EST",
        "exchangeTimezoneName": "America/New_York",
        "regularMarketPrice": closes[-1],
        "regularMarketVolume": 1_000_000,
        "fiftyTwoWeekHigh": max(closes),
        "fiftyTwoWeekLow": min(closes),
        "chartPreviousClose": closes[0],
        "previousClose": closes[-2] if len(closes) > 1 else closes[0],
        "priceHint": 2,
        "currentTradingPeriod": {"pre": period, "regular": period, "post": period},
        "tradingPeriods": [[period]],
        "dataGranularity": request.query.get("interval", "1d"),
        "range": request.query.get("range", ""),
        "validRanges": [*_DAYS],
    }
    quote = {
        "open": [round(close * 0.995, 2) for close in closes],
        "high": [round(close * 1.01, 2) for close in closes],
        "low": [round(close * 0.99, 2) for close in closes],
        "close": closes,
        "volume": [1_000_000] * len(closes),
    }
    return {"meta": meta, "timestamp": begins, "indicators": {"quote": [quote], "adjclose": [{"adjclose": closes}]}}


def _quote(symbol: str) -> dict[str, Any]:
    price = _price(symbol, _OPENING // _DAY_S)
    return {
        "symbol": symbol,
        "shortName": symbol.title(),
        "longName": f"{symbol.title()} Example Inc.",
        "quoteType": "EQUITY",
        "currency": "USD",
        "exchange": "NMS",
        "exchangeTimezoneName": "America/New_York",
        "marketState": "REGULAR",
        "regularMarketPrice": price,
        "regularMarketPreviousClose": price,
        "regularMarketOpen": price,
        "regularMarketDayHigh": price,
        "regularMarketDayLow": price,
        "regularMarketVolume": 1_000_000,
        "regularMarketChangePercent": 0.5,
        "marketCap": 10_000_000_000,
        "trailingPE": 20.0,
        "fiftyTwoWeekHigh": price,
        "fiftyTwoWeekLow": price,
    }


def _modules(symbol: str) -> dict[str, dict[str, Any]]:
    quote = _quote(symbol)
    price = quote["regularMarketPrice"]
    return {
        "price": quote,
        "quoteType": {name: quote[name] for name in ("symbol", "shortName", "longName", "quoteType", "exchange")},
        "summaryDetail": {
            "previousClose": price,
            "marketCap": quote["marketCap"],
            "trailingPE": 20.0,
            "forwardPE": 18.0,
            "dividendYield": 0.01,
            "beta": 1.0,
            "volume": 1_000_000,
            "fiftyTwoWeekHigh": price,
            "fiftyTwoWeekLow": price,
            "currency": "USD",
        },
        "assetProfile": {
            "sector": "Technology",
            "industry": "Software",
            "country": "Example",
            "website": "https://www.example.com/",
            "fullTimeEmployees": 1_000,
            "longBusinessSummary": f"{symbol.title()} Example Inc. makes what its customers ask for.",
            "companyOfficers": [],
        },
        "financialData": {
            "currentPrice": price,
            "targetMeanPrice": price,
            "recommendationKey": "hold",
            "totalRevenue": 5_000_000_000,
            "totalDebt": 1_000_000_000,
            "totalCash": 2_000_000_000,
            "grossMargins": 0.5,
            "operatingMargins": 0.2,
            "profitMargins": 0.15,
            "returnOnEquity": 0.2,
            "debtToEquity": 50.0,
            "revenueGrowth": 0.05,
            "freeCashflow": 500_000_000,
        },
        "defaultKeyStatistics": {
            "trailingEps": 5.0,
            "forwardEps": 5.5,
            "priceToBook": 4.0,
            "sharesOutstanding": 100_000_000,
            "pegRatio": 1.5,
            "bookValue": 25.0,
        },
    }


def _news(symbol: str) -> dict[str, Any]:
    return {
        "uuid": "1",
        "title": f"{symbol} keeps its course",
        "publisher": "Example",
        "link": "https://www.example.com/how-tides-work",
        "providerPublishTime": _OPENING,
        "type": "STORY",
    }
