package redis_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs/redis"
)

// abandons is the variable that makes the test binary one that leaves its server alone.
const abandons = "ABATE_REDIS_ABANDONS"

// ask sends one inline command and returns the first line of the answer.
func ask(t *testing.T, addr, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func listens(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

func TestAServerThatCrashedComesBackWhereItWasWithWhatItHasSaved(t *testing.T) {
	s := redis.New(t)
	at := s.Addr()
	if listens(at) {
		t.Errorf("somebody listens at %s before the start", at)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"SET saved 1", "SAVE", "SET lost 1"} {
		if answer := ask(t, at, command); answer != "+OK" {
			t.Fatalf("%s: %s", command, answer)
		}
	}
	s.Crash()
	if listens(at) {
		t.Error("somebody listens after the crash")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, at, "EXISTS saved lost"); answer != ":1" || s.Addr() != at {
		t.Errorf("at %s, before at %s, it has %s of two keys", s.Addr(), at, answer)
	}
}

func TestAServerThatHasEndedByItselfIsStartedAgain(t *testing.T) {
	s := redis.Start(t)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "SHUTDOWN NOSAVE\r\n"); err != nil {
		t.Fatal(err)
	}
	s.AwaitEnd()
	if err := s.Start(); err != nil || ask(t, s.Addr(), "PING") != "+PONG" {
		t.Errorf("started again: %v", err)
	}
}

func TestConfigurationCounts(t *testing.T) {
	if answer := ask(t, redis.Start(t, "requirepass secret").Addr(), "PING"); !strings.HasPrefix(answer, "-NOAUTH") {
		t.Errorf("with a password: %s", answer)
	}
	if answer := ask(t, redis.Start(t, "sentinel monitor m 127.0.0.1 9 1").Addr(),
		"SENTINEL get-master-addr-by-name m"); answer != "*2" {
		t.Errorf("a Sentinel: %s", answer)
	}
}

func TestAServerThatStandsStillAnswersLater(t *testing.T) {
	s := redis.Start(t)
	s.Pause()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("it answers: %v", err)
	}
	s.Resume()
	_ = conn.SetReadDeadline(time.Time{})
	if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Error(err)
	}
}

// Somebody else who has got the port answers, too.
func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	s := redis.New(t)
	l, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("+PONG\r\n"))
			_ = c.Close()
		}
	}()
	if err := s.Start(); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("its port is taken: %v", err)
	}
	if err := redis.New(t, "no-such-setting 1").Start(); err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("a setting that there is not: %v", err)
	}
}

func TestNothingIsLeftOfAServerWhoseProcessIsKilled(t *testing.T) {
	if os.Getenv(abandons) != "" {
		fmt.Println(redis.Start(t).Addr())
		_ = os.Stdout.Close()
		select {} // to be killed
	}
	redis.New(t)                                        // or this test needs what the other one needs
	folder, err := os.MkdirTemp("", "abate-abandoned-") // short: the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), abandons+"=1", "TMPDIR="+folder)
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil || !listens(addr) {
		t.Errorf("the child's server at %q: %v", addr, err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	over, tick := time.NewTimer(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		left, _ := filepath.Glob(filepath.Join(folder, "*"))
		if len(left) == 0 && !listens(addr) {
			return
		}
		select {
		case <-tick.C:
		case <-over.C:
			t.Fatalf("%q is left, or the server at %s still listens", left, addr)
		}
	}
}

func TestAServerThatLoadsSaysSoUntilItIsDone(t *testing.T) {
	s := redis.Loading(t, 3*time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	times := 0
	for ; strings.HasPrefix(ask(t, s.Addr(), "PING"), "-LOADING"); times++ {
		<-tick.C
	}
	if answer := ask(t, s.Addr(), "DBSIZE"); times == 0 || answer != ":1500" {
		t.Errorf("%d times LOADING, then %s keys", times, answer)
	}
}
