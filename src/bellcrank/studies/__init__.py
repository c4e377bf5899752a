"""Parameter studies: many runs of one machine, on all cores, on clusters, into stores that survive being killed."""
