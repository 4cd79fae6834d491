// Package summary writes what came of a study ([sim.Result]) for terminals, pull requests and programs: [Text] and
// [Overview] for people at a terminal, [Markdown] in five lines, [JUnit] for continuous integration, and [JSON]. The
// same results give the same bytes. Names that users wrote are made harmless for the form they stand in.
package summary
