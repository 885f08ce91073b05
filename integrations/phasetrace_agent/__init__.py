"""What phasetrace loads into the application: records where the time goes, and is not to be noticed.

Nothing here raises into the application, prints, starts a thread, or imports more than the interpreter has
loaded anyway before there is something to record.
"""
