// Package source holds the files that importers read: split into documents, parsed once, each node with its place.
//
// Nothing in it fails as a whole. A document that cannot be parsed becomes a remark, and the others are read. A value
// that is a template ("{{ .Values.tries }}", "${TRIES}") is unknown, with the template as the reason.
package source
