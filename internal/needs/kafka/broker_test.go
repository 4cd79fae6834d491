package kafka_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs/kafka"
)

func TestBrokerComesBackOnItsPortAfterItWasKilledOrStopped(t *testing.T) {
	if testing.Short() {
		return // a broker takes seconds
	}
	b := kafka.Start(t)
	addr := b.Addr()
	for _, end := range []func(){b.Kill, b.Stop} {
		end()
		if listens(addr) {
			t.Fatal("it still listens")
		}
		if err := b.Restart(); err != nil {
			t.Fatalf("%v\n%s", err, b.Log())
		}
		if b.Addr() != addr || !listens(addr) {
			t.Fatalf("it came back on %s, not on %s", b.Addr(), addr)
		}
	}
}

func TestSharedBrokerIsOneAndRuns(t *testing.T) {
	if testing.Short() {
		return // a broker takes seconds
	}
	b := kafka.Shared(t)
	if again := kafka.Shared(t); again != b || !listens(b.Addr()) {
		t.Errorf("first %s, then %s", b.Addr(), again.Addr())
	}
}

// childVariable has this test binary be the process of a test that ends without a word.
const childVariable = "ABATE_KAFKA_CHILD"

func TestBrokerEndsWithTheProcessOfItsTest(t *testing.T) {
	if testing.Short() {
		return // a broker takes seconds
	}
	if os.Getenv(childVariable) != "" {
		b := kafka.Shared(t)
		os.Stdout.WriteString("broker " + b.Addr() + " " + b.Folder() + "\n")
		select {} // until it is killed
	}
	kafka.Shared(t) // what is missing is said here
	child := exec.Command(os.Args[0], "-test.run", "^TestBrokerEndsWithTheProcessOfItsTest$")
	child.Env = append(os.Environ(), childVariable+"=1")
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var words []string
	for lines.Scan() && len(words) != 3 {
		if strings.HasPrefix(lines.Text(), "broker ") {
			words = strings.Fields(lines.Text())
			break
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if len(words) != 3 {
		t.Fatalf("the child started no broker; it said %q", lines.Text())
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(time.Minute)
	defer over.Stop()
	for {
		if _, err := os.Stat(words[2]); os.IsNotExist(err) && !listens(words[1]) {
			return
		}
		select {
		case <-tick.C:
		case <-over.C:
			t.Fatalf("%s still listens: %v; or its folder %s is still there", words[1], listens(words[1]), words[2])
		}
	}
}

func listens(addr string) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
