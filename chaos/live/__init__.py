"""Breaking a real cluster: its processes, the edges between them, its files, and a load that is
recorded. It uses processes and `kraftlog` only, never the inside of a server.
"""
