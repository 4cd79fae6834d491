package kafka

// Metadata is for the tests of reading an answer.
var Metadata = metadata

// Folder is where a broker keeps everything.
func (b *Broker) Folder() string { return b.process.Folder }
