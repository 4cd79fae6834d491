package brokertest_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// guardedBroker is a fake one that lets the user "app" do only what the rules say. The user "root" may do anything.
func guardedBroker(t *testing.T, rules ...kfake.ACL) string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "root", "root"), kfake.User("PLAIN", "app", "app", rules...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

func as(user string) kgo.Opt { return kgo.SASL(plain.Auth{User: user, Pass: user}.AsMechanism()) }

func may(op kmsg.ACLOperation, topic string) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: op, Allow: true}
}

func createAs(t *testing.T, addr string, topics ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), as("root"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	for _, name := range topics {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		req.Topics = append(req.Topics, topic)
	}
	if _, err := req.RequestWith(within(t), client); err != nil {
		t.Fatal(err)
	}
}

func TestPreflightNamesTheRightsThatAreMissing(t *testing.T) {
	addr := guardedBroker(t, may(kmsg.ACLOperationRead, "payments"), may(kmsg.ACLOperationRead, "payments-retry-1s"),
		may(kmsg.ACLOperationDescribe, "payments-dlq"))
	createAs(t, addr, "payments", "payments-retry-1s", "payments-retry-2s", "payments-dlq")
	c := &abatekafka.Consumer{
		Brokers:    []string{addr},
		Group:      "billing",
		Topics:     []string{"payments"},
		Options:    []kgo.Opt{as("app")},
		Guard:      guardOf(t),
		Redelivery: redelivery.Config{Tiers: []time.Duration{time.Second, 2 * time.Second}}.Always(),
	}
	contains(t, misfit(t, c),
		"topic payments-retry-1s: this consumer may not write it. Run: kafka-acls.sh "+
			"--bootstrap-server "+addr+" --add --allow-principal User:... --operation Write --topic payments-retry-1s",
		"topic payments-retry-2s: this consumer may not even see it",
		"topic payments-dlq: this consumer may not write it")
}

func TestPreflightTellsWhoMayNotCreate(t *testing.T) {
	addr := guardedBroker(t, may(kmsg.ACLOperationRead, "payments"), may(kmsg.ACLOperationDescribe, "payments-retry-1s"),
		may(kmsg.ACLOperationDescribe, "payments-dlq"))
	createAs(t, addr, "payments")
	c := &abatekafka.Consumer{Brokers: []string{addr}, Group: "billing", Topics: []string{"payments"},
		Options: []kgo.Opt{as("app")}, Guard: guardOf(t),
		Redelivery: redelivery.Config{Tiers: []time.Duration{time.Second}}.Always()}
	contains(t, misfit(t, c), "topic payments-retry-1s is missing and cannot be created: TOPIC_AUTHORIZATION_FAILED",
		"have somebody who may run: kafka-topics.sh", "--operation Create --topic payments-retry-1s")
}

// What is being retried is as safe as what is not.
func TestRetryTopicsAreCopiedAsOftenAsTheMainTopic(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	b := broker{name: "three", addr: cluster.ListenAddrs()[0]}
	two := "2"
	if _, err := b.admin(t).CreateTopic(within(t), 2, 3, map[string]*string{"min.insync.replicas": &two},
		"payments"); err != nil {
		t.Fatal(err)
	}
	c := &abatekafka.Consumer{Brokers: []string{b.addr}, Group: "billing", Topics: []string{"payments"},
		Guard: guardOf(t), Redelivery: redelivery.Config{Tiers: []time.Duration{time.Second}}.Always(), Check: true}
	contains(t, misfit(t, c), "--topic payments-retry-1s --partitions 2 --replication-factor 3 ",
		"--config min.insync.replicas=2")
	c.Check = false
	fit(t, b, c)
	topics, err := b.admin(t).ListTopics(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"payments-retry-1s", "payments-dlq"} {
		got, _ := settings(t, b, name)
		if n := topics[name].Partitions.NumReplicas(); n != 3 || got["min.insync.replicas"] != "2" {
			t.Errorf("%s: %d copies, min.insync.replicas %s", name, n, got["min.insync.replicas"])
		}
	}
}
