// Package kafka starts a real Apache Kafka for tests: one node, on free ports of loopback, with its data in a folder of
// its own. The jars come from Maven Central, once for each user. A broker ends with its test, and with the test's
// process however that ends.
package kafka
