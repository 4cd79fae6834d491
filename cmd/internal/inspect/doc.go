// Package inspect has the commands that read the retries of other programs: audit, lint and import.
package inspect
