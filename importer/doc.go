// Package importer reads the configurations of retries that a team already has, whatever their formats, into one
// topology.Form.
//
// A file is recognised by its content. Streams of documents are split, lists and ConfigMaps opened. What cannot be read
// becomes a remark of the form; everything else is read nevertheless. The package does no I/O: it is given the files.
package importer
