"""What every other package uses, and which imports none of them: errors, settings, deadlines, clocks, files.

errors                 everything that is raised on purpose
settings               DOCMIND_ environment variables; which endpoints may be reached
deadlines              a deadline, and how it reaches a call; lateness is what counts as late
duration_headers       the headers that carry a remaining duration between processes
budgets                tokens, calls and cost of a run
clock                  the protocol of a clock, real time, and the CPU time that virtual time charges
keywords               a wrong keyword is answered with the right one
levels                 the values that levels of tables may take
limits                 limits of single calls: until the first token, between tokens, in total
time_policies          how time is spent: second requests, and agents that know how much is left
alternative_catalogue  the alternatives, one row each: names, letters, colours, prices, variants
randomness             draws by key
addresses              addresses of endpoints, checked and without credentials
whole_files            files that are written atomically
server_behaviour       what a server does with a call whose client has left
data                   files that come with the package
"""
