package abatekafka

// Known is for the test of what a transaction waits for.
var Known = known
