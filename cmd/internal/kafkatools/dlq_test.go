package kafkatools

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/embedded"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/internal/needs/kafka"
)

// eachKafka runs a test with the address of an embedded broker and, unless -short is set, with that of a real one.
func eachKafka(t *testing.T, fn func(t *testing.T, addr string)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		b, err := embedded.Start(embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		fn(t, b.Addresses()[0])
	})
	if !testing.Short() {
		t.Run("real", func(t *testing.T) { fn(t, kafka.Shared(t).Addr()) })
	}
}

// runDLQ runs "abate dlq".
func runDLQ(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code = DlqCommand(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// topics creates topics with one partition.
func topics(t *testing.T, client *kgo.Client, names ...string) {
	t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	r.TimeoutMillis = 30_000
	for _, name := range names {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		r.Topics = append(r.Topics, topic)
	}
	answer, err := r.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range answer.Topics {
		if topic.ErrorCode != 0 {
			t.Fatalf("topic %s: error %d", topic.Topic, topic.ErrorCode)
		}
	}
}

// deadLetters makes a main topic and a dead-letter topic with 12 letters of two kinds, and one that is binary.
func deadLetters(t *testing.T, addr string) (main, dead string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.UnknownTopicRetries(-1),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	main = fmt.Sprintf("payments-%d", time.Now().UnixNano())
	dead = main + "-dlq"
	topics(t, client, main, dead)
	var records []*kgo.Record
	for i := range 13 {
		l := letter.Letter{Original: letter.Place{Topic: main, Offset: int64(i)}, Timestamp: time.UnixMilli(1760000000000),
			TimestampType: "CreateTime", Group: "billing",
			Failures: 4, First: time.UnixMilli(1760000001000), Last: time.UnixMilli(1760002000000), Class: "*net.OpError",
			Message: fmt.Sprintf("dial tcp 10.0.0.%d:80: refused", i), Reason: "exhausted",
			History: []letter.Past{{Topic: main, At: time.UnixMilli(1760000001000), Class: "*net.OpError"}},
			Headers: []kgo.RecordHeader{{Key: "event-id", Value: fmt.Append(nil, i)}}}
		value := fmt.Appendf(nil, `{"amount":%d}`, i)
		if i%3 == 2 {
			l.Class, l.Message, l.Trace = "card-declined", "card \x1b[31m\"1234\" declined",
				"shop.Charge(...)\n\t/src/bank.go:42\n"
		}
		if i == 12 {
			l.Class, value = "binary", []byte{0, 1, 2, 0xff}
		}
		records = append(records, &kgo.Record{
			Topic: dead, Key: []byte("cust-1"), Value: value, Headers: l.AppendHeaders(nil, letter.Abate),
		})
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return main, dead
}

func TestDLQShowsGroupsLettersAndTheWayBack(t *testing.T) {
	eachKafka(t, func(t *testing.T, addr string) {
		main, dead := deadLetters(t, addr)
		at := []string{"--brokers", addr, "--topic", dead, "--by", "ann"}
		dlq := func(want int, args ...string) string {
			t.Helper()
			code, stdout, stderr := runDLQ(t, append(append(args[:1:1], at...), args[1:]...)...)
			if code != want {
				t.Fatalf("%v: exit code %d\n%s\n%s", args, code, stdout, stderr)
			}
			return stdout + stderr
		}
		says := func(text string, parts ...string) {
			t.Helper()
			for _, part := range parts {
				if !strings.Contains(text, part) {
					t.Errorf("there is no %q in\n%s", part, text)
				}
			}
			if strings.Contains(text, "\x1b") {
				t.Errorf("a letter moves the cursor:\n%s", text)
			}
		}
		list := dlq(0, "ls")
		says(list, dead+": 13 dead letters in 3 groups", "*net.OpError   dial tcp <n>:<n>: refused",
			"card-declined  shop.Charge", "               card ·[31m\"1234\" declined",
			"abate dlq ls --brokers "+addr+" --topic "+dead+" --letters --group ")
		group := regexp.MustCompile(`([0-9a-f]{10})  card-declined`).FindStringSubmatch(list)
		if group == nil {
			t.Fatal(list)
		}
		says(dlq(0, "ls", "--letters", "--group", group[1][:5]), "0/2 ", "0/11 ", "4 letters.",
			"card-declined: card ·[31m\"1234\" declined")
		says(dlq(0, "show", "0/2"), dead+"/0/2\n", "state       waiting", "class       card-declined",
			"4 failures, the first 2025-10-09 08:53:21.000Z", "from        "+main+"/0/2, 2025-10-09 08:53:20.000Z CreateTime",
			"consumers   billing", "history     2025-10-09 08:53:21.000Z  "+main, "headers\n  event-id: 2\n",
			"key (6 bytes)\n  cust-1\n", "value (12 bytes)\n  {\n    \"amount\": 2\n  }\n", "trace\n  shop.Charge(...)\n",
			"Replay it:  abate dlq replay --brokers")
		says(dlq(0, "show", dead+"/0/12"), "00000000  00 01 02 ff")
		says(dlq(1, "show", "0/99"), "there is no dead letter at "+dead+"/0/99")
		says(dlq(2, "show"), "which letter?")
		says(dlq(2, "replay", "--group", group[1]), "this would send 4 messages to "+main+" (4)", "--yes")
		says(dlq(0, "replay", "--group", group[1], "--dry-run"), "4 letters chosen; 4 messages would be sent to "+main+" (4)")
		says(dlq(0, "replay", "--settle", "1ms", "--unjudged", "0/0"),
			"pending: sent 1 of 1: handled 0, failed again 0, still waiting 1; left out 0", "nobody reads it")
		says(dlq(0, "replay", "--group", group[1], "--settle", "1ms", "--unjudged", "--yes"), "pending: sent 4 of 4",
			"batch of 1, sent 0 of 4")
		says(dlq(1, "replay", "--group", group[1], "--yes"), "0 letters chosen")
		says(dlq(2, "delete"), "this would delete 8 letters", "--yes")
		says(dlq(0, "delete", "--where", `class == "binary"`), "1 letter deleted")
		says(dlq(0, "delete", "--yes"), "7 letters deleted")
		says(dlq(1, "ls"), "0 dead letters", "--state any")
		says(dlq(0, "restore", "--dry-run"), "8 letters would be restored")
		says(dlq(0, "restore", "--yes"), "8 letters restored")
		says(dlq(0, "note", group[1], "ticket 4711"), "noted")
		says(dlq(0, "ls", "--state", "any"), "note: ticket 4711")
		says(dlq(1, "cancel", "r-nothing"), "there is no replay")
		says(dlq(0, "delete", "--json", "0/1"), `{"count":1}`+"\n")
		says(dlq(0, "restore", "--json", "--dry-run"), `{"count":1}`+"\n")
		says(dlq(0, "restore", "--json", "0/1"), `{"count":1}`+"\n")
		if answer := dlq(1, "replay", "--json", "--group", "ffffffffff"); !json.Valid([]byte(answer)) {
			t.Errorf("not JSON: %s", answer)
		}
		says(dlq(0, "audit"), "  ann                  replay-start  r-", "replayed      r-", dead+"/0/0 to "+main+"/0/0",
			"pending, sent 4 of 4", "restore       restore-", "note          "+group[1]+": ticket 4711")
	})
}

func TestDLQExportsAndImportsByteForByte(t *testing.T) {
	eachKafka(t, func(t *testing.T, addr string) {
		_, dead := deadLetters(t, addr)
		file := filepath.Join(t.TempDir(), "letters.jsonl")
		at := []string{"--brokers", addr, "--topic", dead}
		code, stdout, stderr := runDLQ(t, append([]string{"export", "--out", file}, at...)...)
		if code != 0 || !strings.Contains(stdout, "13 letters written to "+file) {
			t.Fatal(code, stdout, stderr)
		}
		code, stdout, stderr = runDLQ(t, append([]string{"import", file}, at...)...)
		if code != 0 || !strings.Contains(stdout, "13 letters imported into "+dead) {
			t.Fatal(code, stdout, stderr)
		}
		if code, _, stderr := runDLQ(t, append([]string{"import", file}, at...)...); code != 2 ||
			!strings.Contains(stderr, "imported already") || !strings.Contains(stderr, "--again") {
			t.Error(code, stderr)
		}
		_, stdout, _ = runDLQ(t, append([]string{"export"}, at...)...)
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		if len(lines) != 26 {
			t.Fatalf("%d letters", len(lines))
		}
		for i := range 13 {
			var a, b dlq.Line
			if err := json.Unmarshal([]byte(lines[i]), &a); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(lines[i+13]), &b); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.Value, b.Value) || !bytes.Equal(a.Key, b.Key) ||
				fmt.Sprint(a.Headers) != fmt.Sprint(b.Headers[:len(b.Headers)-1]) ||
				b.Headers[len(b.Headers)-1].Key != "abate-imported" {
				t.Errorf("%s\n%s", lines[i], lines[i+13])
			}
		}
		if err := os.WriteFile(file, []byte("{}\n"+lines[0]+"\nnonsense\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := runDLQ(t, append([]string{"import", file}, at...)...); code != 2 ||
			!strings.Contains(stderr, `line 1: it has no "at"`) ||
			!strings.Contains(stderr, "line 3: it is not a JSON object") ||
			!strings.Contains(stderr, "nothing was imported") {
			t.Error(code, stderr)
		}
	})
}

func TestDLQAsksForTheTopic(t *testing.T) {
	b, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	addr := b.Addresses()[0]
	if code, _, stderr := runDLQ(t, "ls", "--brokers", addr); code != 2 ||
		!strings.Contains(stderr, "no topic's name ends with -dlq, -dlt or .DLT") {
		t.Error(code, stderr)
	}
	_, dead := deadLetters(t, addr)
	if code, stdout, stderr := runDLQ(t, "ls", "--brokers", addr); code != 0 ||
		!strings.Contains(stdout, dead+": 13 dead letters") {
		t.Error(code, stdout, stderr)
	}
	_, second := deadLetters(t, addr)
	if code, _, stderr := runDLQ(t, "ls", "--brokers", addr); code != 2 || !strings.Contains(stderr, "which topic?") ||
		!strings.Contains(stderr, dead) || !strings.Contains(stderr, second) {
		t.Error(code, stderr)
	}
}

func TestDLQTellsEverythingThatIsWrongWithItsWords(t *testing.T) {
	t.Setenv("ABATE_BROKERS", "")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"Usage: abate dlq COMMAND"}},
		{[]string{"list"}, []string{`there is no command "list"`, "Usage: abate dlq"}},
		{[]string{"ls"}, []string{"--brokers is missing", "ABATE_BROKERS"}},
		{[]string{"ls", "--brokers", "kafka", "--where", "clas == 1", "--from", "soon", "--offsets", "1", "--sasl", "gssapi",
			"--cert", "x", "0/1", "0/2"}, []string{
			`"kafka" is not an address`, `--where: column 1: "clas" is not known`, `--from: "soon" is not a time`,
			`--offsets: "1" is not a range`, `--sasl: "gssapi" is not known`,
			"--user is missing", "--password-file is missing", "--cert and --key belong together", `"0/2" is a word too many`}},
		{[]string{"show", "--brokers", "127.0.0.1:1", "--ca", "missing.pem"}, []string{"--ca: open missing.pem"}},
		{[]string{"ls", "--junk"}, []string{"flag provided but not defined: -junk"}},
		{[]string{"ls", "--brokers", "127.0.0.1:1", "--partition", "-1"}, []string{`"-1" is not the number of a partition`}},
	} {
		code, stdout, stderr := runDLQ(t, test.args...)
		if code != 2 || stdout != "" {
			t.Errorf("%v: exit code %d, %q", test.args, code, stdout)
		}
		for _, want := range test.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%v: there is no %q in\n%s", test.args, want, stderr)
			}
		}
	}
}

func TestDLQHelpIsNarrowAndComplete(t *testing.T) {
	_, all, _ := runDLQ(t, "-h")
	helps := []string{all}
	for _, a := range dlqActions() {
		code, stdout, stderr := runDLQ(t, a.name, "--help")
		if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "Usage: abate dlq "+a.name) ||
			!strings.Contains(stdout, "\n  abate dlq "+a.name) {
			t.Errorf("%s: exit code %d, %q, %q", a.name, code, stdout, stderr)
		}
		if !strings.Contains(all, a.name) {
			t.Errorf("the help does not list %s", a.name)
		}
		helps = append(helps, stdout)
	}
	for _, help := range helps {
		for line := range strings.Lines(help) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 100 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

func TestDLQReplayThatStopsSaysHowToGoOn(t *testing.T) {
	b, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	main, dead := deadLetters(t, b.Addresses()[0])
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addresses()...), kgo.ConsumeTopics(main),
		kgo.FetchMaxWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var consumer sync.WaitGroup
	consumer.Go(func() { // fails at every message
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(m *kgo.Record) {
				_ = client.ProduceSync(ctx, &kgo.Record{Topic: dead, Headers: m.Headers})
			})
		}
	})
	t.Cleanup(func() { cancel(); consumer.Wait(); client.Close() })
	at := []string{"--brokers", b.Addresses()[0], "--topic", dead}
	code, stdout, stderr := runDLQ(t, append([]string{"replay", "--settle", "1m", "--yes"}, at...)...)
	resume := regexp.MustCompile(`--resume (r-[0-9a-f]{8})`).FindStringSubmatch(stdout)
	if code != 1 || !strings.Contains(stdout, "stopped: sent 1 of 13: handled 0, failed again 1, still waiting 0") ||
		!strings.Contains(stdout, "1 of 1 of the batch failed again, more than 10 %") || resume == nil {
		t.Fatal(code, stdout, stderr)
	}
	for _, more := range [][]string{
		{"--group", "1a2b"}, {"--where", "failures > 3"}, {"--dry-run"}, {"--to", main + "-else"}, {"0/1"},
	} {
		words := append([]string{"replay", "--resume", resume[1]}, append(more, at...)...)
		if code, stdout, stderr := runDLQ(t, words...); code != 2 || stdout != "" || !strings.Contains(stderr, "resume") {
			t.Errorf("%v: %d %s %s", more, code, stdout, stderr)
		}
	}
	code, stdout, stderr = runDLQ(
		t, append([]string{"replay", "--settle", "20s", "--max-failures", "1", "--json", "--resume", resume[1]}, at...)...)
	var p dlq.Progress
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || code != 0 || p.Sent != 13 || p.Phase != dlq.Done ||
		p.ID != resume[1] {
		t.Error(code, stdout, stderr, err)
	}
}

func TestDLQEditsOneLetter(t *testing.T) {
	b, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	main, dead := deadLetters(t, b.Addresses()[0])
	file := clitest.Put(t, "value.json", `{"amount":7}`)
	at := []string{"--brokers", b.Addresses()[0], "--topic", dead}
	code, stdout, stderr := runDLQ(t, append([]string{"replay", "--edit", file, "0/3"}, at...)...)
	if code != 0 || stdout != dead+"/0/3 was sent as "+main+"/0/0 with another value of 12 bytes\n" {
		t.Error(code, stdout, stderr)
	}
	if code, stdout, _ := runDLQ(t, append([]string{"show", "0/3"}, at...)...); code != 0 ||
		!strings.Contains(stdout, "state       replayed") || strings.Contains(stdout, "Replay it:") {
		t.Error(code, stdout)
	}
	for _, words := range [][]string{{"replay", "--edit", file}, {"replay", "--edit", file, "--dry-run", "0/1"},
		{"replay", "--edit", "missing", "0/1"}, {"replay", "--edit", file, "0/3"}} {
		if code, _, stderr := runDLQ(t, append(words, at...)...); code != 2 ||
			!strings.Contains(stderr, "abate dlq replay: ") {
			t.Errorf("%v: %d %s", words, code, stderr)
		}
	}
}

func TestDLQConnectsWithTLSAndSASL(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	certificate := httptest.NewTLSServer(nil)
	defer certificate.Close()
	ca := clitest.Put(t, "ca.pem",
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate().Raw})))
	password := clitest.Put(t, "password", "secret\nnot this line\n")
	for _, kind := range []struct {
		flag, broker string
	}{{"plain", "PLAIN"}, {"scram-256", "SCRAM-SHA-256"}, {"scram-512", "SCRAM-SHA-512"}} {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(0), kfake.TLS(certificate.TLS.Clone()),
			kfake.EnableSASL(), kfake.Superuser(kind.broker, "ann", "secret"), kfake.SeedTopics(1, "pay-dlq"))
		if err != nil {
			t.Fatal(err)
		}
		at := []string{"ls", "--brokers", cluster.ListenAddrs()[0], "--topic", "pay-dlq", "--ca", ca, "--sasl", kind.flag,
			"--user", "ann", "--password-file", password}
		if code, stdout, stderr := runDLQ(t, at...); code != 1 || !strings.Contains(stdout, "pay-dlq: 0 dead letters") {
			t.Errorf("%s: %d %s %s", kind.flag, code, stdout, stderr)
		}
		at[len(at)-1] = clitest.Put(t, "wrong", "wrong")
		if code, _, stderr := runDLQ(t, at...); code != 2 ||
			!strings.Contains(stderr, "connect to "+cluster.ListenAddrs()[0]) {
			t.Errorf("%s, wrong password: %d %s", kind.flag, code, stderr)
		}
		cluster.Close()
	}
}

func TestDLQShowsHostileValuesAsBytes(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("1,", 50_000) + "1" + strings.Repeat("]", 5000)
	for _, test := range []struct{ value, want string }{
		{"harmless\r\nlines", "  harmless\n  lines\n"},
		{"paid: no\rpaid: yes", "|paid: no.paid: y|"},
		{"\x1b[2J", "|.[2J|"},
		{deep, "  " + deep + "\n"}, // laid out it would be a gigabyte
	} {
		var out bytes.Buffer
		if showBytes(&out, "value", []byte(test.value), true); !strings.Contains(out.String(), test.want) ||
			out.Len() > 10*len(test.value)+200 {
			t.Errorf("%.50q: %d bytes %.300q", test.value, out.Len(), out.String())
		}
	}
}
