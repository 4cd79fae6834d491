// Package brokertest holds the tests of package abatekafka that need a broker: every one runs on the embedded fake and
// on a real Kafka.
package brokertest
