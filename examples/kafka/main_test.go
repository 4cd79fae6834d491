package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/internal/needs/kafka"
)

// TestMain runs the program instead of the tests where a test asks for that.
func TestMain(m *testing.M) {
	if os.Getenv("ABATE_EXAMPLE") == "kafka" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheJourneyOfEachMessage(t *testing.T) {
	needs.Whole(t)
	out := told(t)
	if !bytes.Contains(out, []byte("This is a fake broker inside this program")) {
		t.Errorf("it does not say that its broker is a fake:\n%s", out)
	}
	journeys(t, out)
}

func TestTheJourneyOfEachMessageOnARealKafka(t *testing.T) {
	if testing.Short() {
		return // it takes seconds to start
	}
	out := told(t, "--brokers", kafka.Shared(t).Addr())
	if bytes.Contains(out, []byte("fake")) {
		t.Errorf("it speaks of a fake broker:\n%s", out)
	}
	journeys(t, out)
}

// told is what the program prints.
func told(t *testing.T, args ...string) []byte {
	t.Helper()
	program := exec.Command(os.Args[0], args...)
	program.Env = append(os.Environ(), "ABATE_EXAMPLE=kafka")
	out, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func journeys(t *testing.T, out []byte) {
	t.Helper()
	for _, want := range []string{
		`order-1  delivery 1  handled`,
		`order-2  delivery 1  failed \(bank-away\): to payments-\d+-retry-500ms, due in 500ms`,
		`order-2  delivery 2  from payments-\d+-retry-500ms, [\dms.]+ after it was due`,
		`order-2  delivery 2  failed \(bank-away\): to payments-\d+-retry-2s, due in 2s`,
		`order-2  delivery 3  handled`, // its bank came back
		`order-3  delivery 4  failed \(bank-away\): to payments-\d+-dlq, because it is exhausted`,
		`payments-\d+/0/2 is a dead letter, failures: 4: the bank does not answer`,
		`order-4  delivery 1  failed \(.*\): to payments-\d+-dlq, because it is permanent`, // poison
		`key order-3, value {"order":"order-3","euros":30}\n +customer +4711\n`,
		`key order-4, value order-4;40\n +customer +4711\n`,
		`kafka_original-topic +payments-\d+\n`,
		`abate dlq ls --brokers 127.0.0.1:\d+ --topic payments-\d+-dlq`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "  handled"); n != 2 {
		t.Errorf("%d messages were handled, want 2:\n%s", n, out)
	}
}
