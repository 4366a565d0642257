"""The project's own costs, as ratios within one run: `make bench`.

peer_races, peer_chaos and stage_timeouts are experiments of the documentation, for notebooks 08 and 09: every order of
what can happen to one call, peers that misbehave, and fixed against adaptive timeouts.
"""
