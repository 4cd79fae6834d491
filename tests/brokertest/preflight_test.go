package brokertest_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/redelivery"
)

func ignore(context.Context, *abatekafka.Message) error { return nil }

// misfit runs a consumer that cannot run, and returns why.
func misfit(t *testing.T, c *abatekafka.Consumer) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if c.Handler == nil {
		c.Handler = ignore
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(testLog{t}, nil))
	}
	err := c.Run(ctx)
	if err == nil {
		t.Fatal("it ran")
	}
	t.Log(err)
	return err.Error()
}

// fit runs a consumer until it has handled a message.
func fit(t *testing.T, b broker, c *abatekafka.Consumer) {
	t.Helper()
	b.produce(t, c.Topics[0], &kgo.Record{Value: []byte("hello")})
	var got seen
	c.Handler = func(_ context.Context, m *abatekafka.Message) error { got.note(m.Topic); return nil }
	stop := runConsumer(t, c)
	eventually(t, "a message", func() bool { return got.count(c.Topics[0]) > 0 })
	stop()
}

func contains(t *testing.T, message string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("it does not say %q", part)
		}
	}
}

// settings reads the settings of a topic and its number of partitions.
func settings(t *testing.T, b broker, topic string) (map[string]string, int) {
	t.Helper()
	all := map[string]string{}
	admin := b.admin(t)
	configs, err := admin.DescribeTopicConfigs(within(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs[0].Configs {
		if c.Value != nil {
			all[c.Key] = *c.Value
		}
	}
	topics, err := admin.ListTopics(within(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	return all, len(topics[topic].Partitions)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func TestPreflightCreatesTopicsThatFit(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 3, "max.message.bytes=2000000")
		c := redelivery.Config{
			Tiers: []time.Duration{time.Second, time.Hour}, Outage: 48 * time.Hour, DLTRetention: 100 * time.Hour,
		}
		fit(t, b, &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: c.Always(), Replication: 1,
		})
		for topic, retention := range map[string]time.Duration{
			main + "-retry-1s": 48*time.Hour + time.Second, main + "-retry-1h": 49 * time.Hour, main + "-dlq": 100 * time.Hour,
		} {
			got, partitions := settings(t, b, topic)
			if partitions != 3 || got["retention.ms"] != milliseconds(retention) || got["cleanup.policy"] != "delete" ||
				got["max.message.bytes"] != "2065536" {
				t.Errorf("%s: %d partitions, retention.ms %s, cleanup.policy %s, max.message.bytes %s", topic, partitions,
					got["retention.ms"], got["cleanup.policy"], got["max.message.bytes"])
			}
		}
	})
}

func TestMembersThatStartTogetherCreateTheTopicsOnce(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 2)
		b.produce(t, main, spread(100, 2)...)
		var got seen
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				runConsumer(t, &abatekafka.Consumer{
					Brokers:    []string{b.addr},
					Group:      main,
					Topics:     []string{main},
					Guard:      guardOf(t),
					Redelivery: shortTiers().Always(),
					Handler:    func(_ context.Context, m *abatekafka.Message) error { got.note(string(m.Value)); return nil },
				})
			})
		}
		all.Wait()
		eventually(t, "all messages", func() bool { return got.distinct() == 100 })
	})
}

func TestPreflightOnlyChecksIfToldSo(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 3)
		c := &abatekafka.Consumer{Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Check: true, Replication: 1,
			Guard: guardOf(t), Redelivery: redelivery.Config{Tiers: []time.Duration{30 * time.Second}}.Always()}
		contains(t, misfit(t, c),
			"topic "+main+"-retry-30s is missing", "topic "+main+"-dlq is missing",
			"kafka-topics.sh --bootstrap-server "+b.addr+" --create --topic "+main+"-retry-30s --partitions 3 "+
				"--replication-factor 1 --config cleanup.policy=delete --config retention.ms=604830000")
		topics, err := b.admin(t).ListTopics(within(t))
		if err != nil || topics.Has(main+"-retry-30s") || topics.Has(main+"-dlq") {
			t.Errorf("it created topics (%v)", err)
		}
	})
}

func TestPreflightTellsAllMisfitsAtOnceAndTheCommandsFixThem(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 3)
		hop, dead := main+"-retry-30s", main+"-dlq"
		b.create(t, hop, 1, "cleanup.policy=compact", "retention.ms=1000", "max.message.bytes=1000")
		b.create(t, dead, 1, "retention.ms=1000", "cleanup.policy=compact,delete")
		c := &abatekafka.Consumer{Brokers: []string{b.addr}, Group: main, Topics: []string{main},
			Guard: guardOf(t), Redelivery: redelivery.Config{Tiers: []time.Duration{30 * time.Second}}.Always()}
		message := misfit(t, c)
		contains(t, message,
			"topic "+hop+" has fewer partitions (1) than "+main+" (3)", "--alter --topic "+hop+" --partitions 3",
			"topic "+hop+" has cleanup.policy=compact", "--entity-name "+hop+" --add-config cleanup.policy=delete",
			"topic "+hop+" has max.message.bytes=1000", "--add-config max.message.bytes=1114124",
			"topic "+hop+" has retention.ms=1000, which is 1s, but messages must be kept for 168h0m30s",
			"--add-config retention.ms=604830000",
			"topic "+dead+" has cleanup.policy=compact,delete", "topic "+dead+" has retention.ms=1000",
			"--entity-name "+dead+" --add-config retention.ms=2592000000")
		b.obey(t, message)
		fit(t, b, c)
	})
}

// obey does what the commands in a message do.
func (b broker) obey(t *testing.T, message string) {
	t.Helper()
	admin := b.admin(t)
	for line := range strings.SplitSeq(message, "\n") {
		_, command, found := strings.Cut(line, "Run: ")
		if !found {
			continue
		}
		words := strings.Fields(command)
		flag := func(name string) string { return words[slices.Index(words, name)+1] }
		var err error
		switch words[0] {
		case "kafka-configs.sh":
			key, value, _ := strings.Cut(flag("--add-config"), "=")
			_, err = admin.AlterTopicConfigs(within(t), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}},
				flag("--entity-name"))
		case "kafka-topics.sh":
			n, _ := strconv.Atoi(flag("--partitions"))
			_, err = admin.UpdatePartitions(within(t), n, flag("--topic"))
		}
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
}

func TestPreflightMissesTheMainTopic(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := unique(t)
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
		}
		contains(t, misfit(t, c), "topic "+main+" is not there", "--create --topic "+main)
		if topics, err := b.admin(t).ListTopics(within(t), main); err != nil || topics.Has(main) {
			t.Errorf("asking for it created it (%v)", err)
		}
	})
}

func TestPreflightRefusesNamesThatCannotBe(t *testing.T) {
	long := strings.Repeat("n", 245)
	for name, c := range map[string]struct {
		topics  []string
		group   string
		config  redelivery.Config
		message []string
	}{
		"a retry topic is consumed": {
			[]string{"a", "a-retry-1s"}, "g", redelivery.Config{Tiers: []time.Duration{time.Second}}, []string{
				"topic a-retry-1s is the topic that is consumed and also the retry topic of a after 1s",
			},
		},
		"dead letters are consumed": {[]string{"a", "a-dlq"}, "g", redelivery.Config{Tiers: []time.Duration{time.Second}},
			[]string{"topic a-dlq is", "dead-letter topic of a"}},
		"too long": {[]string{long}, "g", redelivery.Config{Tiers: []time.Duration{time.Second}}, []string{
			"has a name of 254 characters, and Kafka takes 249",
		}},
		"illegal group in names": {
			[]string{"a"}, "my group", redelivery.Config{Tiers: []time.Duration{time.Second}, GroupInNames: true}, []string{
				`topic "a-my group-retry-1s"`, "Kafka takes only letters",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			contains(t, misfit(t, &abatekafka.Consumer{
				Brokers: []string{"127.0.0.1:1"}, Group: c.group, Topics: c.topics, Guard: guardOf(t),
				Redelivery: c.config.Always(),
			}), c.message...)
		})
	}
}

func TestTwoGroupsDoNotShareRetryTopics(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 1)
		consumer := func(group string, inNames bool) *abatekafka.Consumer {
			c := shortTiers()
			c.GroupInNames = inNames
			return &abatekafka.Consumer{Brokers: []string{b.addr}, Group: group, Topics: []string{main}, Guard: guardOf(t),
				Redelivery: c.Always()}
		}
		first, second := "first-"+main, "second-"+main
		fit(t, b, consumer(first, false))
		admin := b.admin(t)
		offsets := kadm.Offsets{}
		offsets.AddOffset(main+"-retry-200ms", 0, 0, -1)
		if err := admin.CommitAllOffsets(within(t), first+"-retry-200ms", offsets); err != nil {
			t.Fatal(err)
		}
		contains(t, misfit(t, consumer(second, false)),
			"topic "+main+"-retry-200ms is read by group "+first+"-retry-200ms, too", "kafka.groupInNames",
			main+"-"+second+"-retry-200ms")
		fit(t, b, consumer(second, true))
		fit(t, b, consumer(first, false))
	})
}

// Of two groups that begin together neither sees the other. Each passes over what the other failed at, so they live,
// and must live through a restart.
func TestGroupThatHasRunStartsAgainThoughAnotherReadsItsRetryTopics(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 1)
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: "first-" + main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
		}
		fit(t, b, c)
		offsets := kadm.Offsets{}
		offsets.AddOffset(main+"-retry-200ms", 0, 0, -1)
		if err := b.admin(t).CommitAllOffsets(within(t), "second-"+main+"-retry-200ms", offsets); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer // of the preflight, which is over before the first message comes
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		fit(t, b, c)
		contains(t, log.String(), "is read by group second-"+main+"-retry-200ms, too", "kafka.groupInNames")
	})
}

// A client can be set to 100 MiB at most, and to 512 bytes at least.
func TestTopicsThatTakeAnySizeKeepNobodyFromStarting(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 1, "max.message.bytes=2147483647")
		fit(t, b, &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
		})
	})
}

// A topic that is being created, by another member or by hand, has no partitions yet on some brokers.
func TestPreflightWaitsForTopicsThatAreBeingCreated(t *testing.T) {
	b := newFake(t, false)
	main := b.topic(t, 3)
	c := &abatekafka.Consumer{
		Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
		Redelivery: shortTiers().Always(),
	}
	fit(t, b, c)
	for _, topic := range []string{main + "-retry-200ms", main} {
		left := 3
		b.fake.Cluster().ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
			b.fake.Cluster().KeepControl()
			req := r.(*kmsg.MetadataRequest)
			if left == 0 || !req.IncludeTopicAuthorizedOperations { // it is the preflight that asks for these
				return nil, nil, false
			}
			left--
			resp := req.ResponseKind().(*kmsg.MetadataResponse)
			resp.ControllerID = 0
			host, port, _ := net.SplitHostPort(b.addr)
			number, _ := strconv.Atoi(port)
			broker := kmsg.NewMetadataResponseBroker()
			broker.Host, broker.Port = host, int32(number)
			resp.Brokers = append(resp.Brokers, broker)
			for _, wanted := range req.Topics {
				answer := kmsg.NewMetadataResponseTopic()
				answer.Topic, answer.ErrorCode = wanted.Topic, kerr.LeaderNotAvailable.Code
				if *wanted.Topic != topic {
					answer.ErrorCode = 0
					for number := range int32(3) {
						partition := kmsg.NewMetadataResponseTopicPartition()
						partition.Partition, partition.Replicas = number, []int32{0}
						answer.Partitions = append(answer.Partitions, partition)
					}
				}
				resp.Topics = append(resp.Topics, answer)
			}
			return resp, nil, true
		})
		fit(t, b, c)
		if left > 0 {
			t.Errorf("%s: %d answers were not asked for", topic, left)
		}
	}
}

func TestOnceMustRememberForAsLongAsTheChain(t *testing.T) {
	b := newFake(t, false)
	main := b.topic(t, 1)
	once := abatekafka.Once(idempotency.NewMemory(1<<20, core.Now))
	once.Retention = time.Minute
	c := &abatekafka.Consumer{Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Once: once,
		Guard:      guardOf(t),
		Redelivery: redelivery.Config{Tiers: []time.Duration{30 * time.Second, 5 * time.Minute}}.Always()}
	contains(t, misfit(t, c), "Once.Retention is 1m0s, but a message is on its way through the retry topics for 5m30s")
}

func TestBrokersThatAreAwayAreTold(t *testing.T) {
	c := &abatekafka.Consumer{Brokers: []string{"127.0.0.1:1"}, Group: "g", Topics: []string{"a"},
		Guard: guardOf(t), Redelivery: shortTiers().Always(), Options: []kgo.Opt{kgo.RetryTimeout(time.Second)}}
	contains(t, misfit(t, c), "brokers 127.0.0.1:1: ", "connection refused", "see whether they are up")
}

func TestPreflightEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &abatekafka.Consumer{
		Brokers: []string{"127.0.0.1:1"}, Group: "g", Topics: []string{"a"}, Guard: guardOf(t),
		Redelivery: shortTiers().Always(), Handler: ignore,
	}
	if err := c.Run(ctx); err != nil {
		t.Errorf("told to stop while it began: %v", err)
	}
}
