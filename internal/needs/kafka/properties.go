package kafka

import (
	"fmt"
	"strconv"
	"strings"
)

// node is the id of the one node.
const node = 1

// again are lines for a broker that comes back: it may take part only when the controller has missed it, so that is
// soon. The first time, and on a machine that is busy, there is no need to miss anybody.
var again = []string{"broker.heartbeat.interval.ms=200", "broker.session.timeout.ms=1000"}

// properties is the configuration of a node; more are lines like "message.max.bytes=2000000", of which the last counts.
// For {clients} and {controller} in them the ports are put.
func properties(p ports, data string, more []string) []byte {
	lines := []string{
		"process.roles=broker,controller",
		fmt.Sprintf("node.id=%d", node),
		fmt.Sprintf("controller.quorum.voters=%d@127.0.0.1:%d", node, p.controller),
		"controller.listener.names=CONTROLLER",
		fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", p.clients, p.controller),
		fmt.Sprintf("advertised.listeners=PLAINTEXT://127.0.0.1:%d", p.clients),
		"inter.broker.listener.name=PLAINTEXT",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs=" + data,
		// One of each will do.
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		"share.coordinator.state.topic.num.partitions=1",
		"num.partitions=1", "auto.create.topics.enable=false",
		// Members that were killed are missed soon, and nobody waits for others to join.
		"group.min.session.timeout.ms=1000", "group.initial.rebalance.delay.ms=0",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
		"controlled.shutdown.enable=false",
	}
	where := strings.NewReplacer("{clients}", strconv.Itoa(p.clients), "{controller}", strconv.Itoa(p.controller))
	return []byte(where.Replace(strings.Join(append(lines, more...), "\n") + "\n"))
}
