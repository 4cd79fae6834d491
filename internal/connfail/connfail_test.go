package connfail_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/connfail"
)

// sqlError is what pgx and lib/pq have in common.
type sqlError string

func (e sqlError) Error() string    { return "FATAL: something (SQLSTATE " + string(e) + ")" }
func (e sqlError) SQLState() string { return string(e) }

// redisError is what go-redis's errors have in common.
type redisError string

func (e redisError) Error() string { return string(e) }
func (e redisError) RedisError()   {}

// decision reads an outcome back.
func decision(o abate.Outcome) connfail.Decision {
	switch {
	case o.Class == abate.Ignored:
		return connfail.Answer
	case o.Class == abate.Overload:
		return connfail.Slower
	case o.NoRetry:
		return connfail.Final
	}
	return connfail.Again
}

const (
	again, slower, final, answer = connfail.Again, connfail.Slower, connfail.Final, connfail.Answer
)

var judgements = []struct {
	name               string
	err                error
	opening, statement connfail.Decision
}{
	{"wrong password", sqlError("28P01"), final, final},
	{"no entry in pg_hba.conf", sqlError("28000"), final, final},
	{"no such database", sqlError("3D000"), final, final},
	{"no right to connect", sqlError("42501"), final, answer},
	{"an unknown setting", sqlError("42704"), final, answer},
	{"a syntax error", sqlError("42601"), final, answer},
	{"too many connections", sqlError("53300"), slower, slower},
	{"out of disk", sqlError("53100"), slower, slower},
	{"starting up", sqlError("57P03"), again, again},
	{"shutting down", sqlError("57P01"), again, again},
	{"crashed", sqlError("57P02"), again, again},
	{"statement_timeout", sqlError("57014"), again, final},
	{"connection failure", sqlError("08006"), again, again},
	{"read-only", sqlError("25006"), again, again},
	{"a replica, finds pgx", fmt.Errorf("ValidateConnect failed: %w", errors.New("server is in standby mode")),
		again, again},
	{"no replica, finds pgx", fmt.Errorf("ValidateConnect failed: %w", errors.New("server is not in hot standby mode")),
		again, again},
	{"duplicate key", sqlError("23505"), again, answer},
	{"failed transaction", sqlError("25P02"), again, answer},
	{"serialization failure", sqlError("40001"), again, again},
	{"deadlock", sqlError("40P01"), again, again},
	{"internal error", sqlError("XX000"), again, final},
	{"a code that is none", sqlError("what?"), again, answer},
	{"wrapped", fmt.Errorf("failed to connect: %w", sqlError("28P01")), final, final},

	{"MySQL: access denied", errors.New("Error 1045 (28000): Access denied for user 'x'@'y' (using password: YES)"),
		final, final},
	{"MySQL: unknown database", errors.New("Error 1049 (42000): Unknown database 'x'"), final, final},
	{"MySQL: too many connections", errors.New("Error 1040: Too many connections"), slower, slower},
	{"MySQL: read-only", errors.New("Error 1290 (HY000): The MySQL server is running with the --read-only option"),
		again, again},
	{"MySQL: by SQLSTATE", errors.New("Error 1064 (42000): You have an error in your SQL syntax"), final, answer},
	{"MySQL: duplicate", errors.New("Error 1062 (23000): Duplicate entry"), again, answer},
	{"not MySQL", errors.New("Error 10 times in a row"), again, again},

	{"Redis: wrong password", redisError("WRONGPASS invalid username-password pair or user is disabled."), final, final},
	{"Redis: no password", redisError("NOAUTH Authentication required."), final, final},
	{"Redis: not permitted", redisError("NOPERM this user has no permissions to run the 'get' command"), final, final},
	{"Redis: password not expected",
		redisError("ERR AUTH <password> called without any password configured for the default user."), final, final},
	{"Redis: protected mode", redisError("DENIED Redis is running in protected mode"), final, final},
	{"Redis: loading", redisError("LOADING Redis is loading the dataset in memory"), again, again},
	{"Redis: busy", redisError("BUSY Redis is busy running a script."), again, again},
	{"Redis: no primary", redisError("MASTERDOWN Link with MASTER is down"), again, again},
	{"Redis: cluster down", redisError("CLUSTERDOWN The cluster is down"), again, again},
	{"Redis: try again", redisError("TRYAGAIN Multiple keys request during rehashing of slot"), again, again},
	{"Redis: replica", redisError("READONLY You can't write against a read only replica."), again, again},
	{"Redis: full", redisError("ERR max number of clients reached"), slower, slower},
	{"Redis: out of memory", redisError("OOM command not allowed when used memory > 'maxmemory'."), slower, slower},
	{"Redis: an answer", redisError("WRONGTYPE Operation against a key holding the wrong kind of value"), again, answer},
	{"Redis: none", redisError("redis: nil"), again, answer},
	{"the words of Redis from somebody else", errors.New("WRONGPASS"), again, again},

	{"refused", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		again, again},
	{"no socket yet", os.NewSyscallError("connect", syscall.ENOENT), again, again},
	{"reset", os.NewSyscallError("read", syscall.ECONNRESET), again, again},
	{"closed", io.EOF, again, again},
	{"closed in the middle", fmt.Errorf("failed to receive message: %w", io.ErrUnexpectedEOF), again, again},
	{"no permission for a socket", os.NewSyscallError("connect", syscall.EACCES), final, final},
	{"too many open files", os.NewSyscallError("socket", syscall.EMFILE), slower, slower},
	{"out of ports", os.NewSyscallError("connect", syscall.EADDRNOTAVAIL), slower, slower},
	{"no answer", os.ErrDeadlineExceeded, again, again},
	{"out of time", fmt.Errorf("dial: %w", context.DeadlineExceeded), again, again},
	{"unknown host", &net.DNSError{Err: "no such host", Name: "db", IsNotFound: true}, again, again},
	{"DNS does not answer", &net.DNSError{Err: "server misbehaving", Name: "db", IsTemporary: true}, again, again},
	{"unknown port", &net.DNSError{Err: "unknown port", Name: "tcp/nope", IsNotFound: true}, final, final},

	{"an unknown authority", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, final, final},
	{"another host's certificate", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "db"}, final, final},
	{"no TLS there", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, final, final},
	{"TLS refused before it began", fmt.Errorf("tls error: %w", errors.New("server refused TLS connection")),
		final, final},
	{"TLS that MySQL does not have", errors.New("TLS requested but server does not support TLS"), final, final},
	{"an alert", &net.OpError{Op: "remote error", Err: tls.AlertError(42)}, final, final},
	{"an alert that is the other side's own fault", &net.OpError{Op: "remote error", Err: tls.AlertError(80)},
		again, again},
	{"Kafka: wrong password", errors.New("SASL_AUTHENTICATION_FAILED: SASL Authentication failed"), final, final},
	{"Kafka: no TLS where there is some",
		errors.New("invalid large response size 352518912 > limit 104857600; the first three bytes received appear to be a " +
			"tls alert record for TLS v1.2; is this a plaintext connection speaking to a tls endpoint?"), final, final},

	{"no rows", sql.ErrNoRows, final, answer},
	{"a wrong Scan", fmt.Errorf(`sql: Scan error on column index 0, name "n": %w`, strconv.ErrSyntax), final, answer},
	{"something else", errors.New("something else"), again, again},
}

func TestErrorsAreJudgedAsAnOperatorWould(t *testing.T) {
	for _, test := range judgements {
		t.Run(test.name, func(t *testing.T) {
			if got := decision(connfail.Classify(test.err)); got != test.opening {
				t.Errorf("opening a connection: %s, want %s", got, test.opening)
			}
			if got := decision(connfail.ClassifyStatement(test.err)); got != test.statement {
				t.Errorf("a statement: %s, want %s", got, test.statement)
			}
			if o := connfail.Classify(test.err); o.Err != test.err {
				t.Errorf("the outcome has lost the error: %v", o.Err)
			}
			if text := connfail.Explain(test.err); !strings.Contains(text, ": "+string(test.opening)) ||
				strings.Contains(text, "\n") {
				t.Errorf("explained as %q", text)
			}
		})
	}
	if o := connfail.Classify(nil); o != (abate.Outcome{}) || connfail.ClassifyStatement(nil) != o ||
		connfail.Explain(nil) != "" {
		t.Errorf("no error is %+v, %q", o, connfail.Explain(nil))
	}
}

func TestRealErrorsOfTheNetworkAreRecognised(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.0 400 what was that?\r\n\r\n"))
			_ = c.Close()
		}
	}()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	dial := func(network, address string) error {
		_, err := new(net.Dialer).DialContext(t.Context(), network, address)
		return err
	}
	_, noTLS := new(tls.Dialer).DialContext(t.Context(), "tcp", silent.Addr().String())
	for _, test := range []struct {
		name string
		err  error
		sign string
	}{
		{"a closed port", dial("tcp", closed.Addr().String()), "ECONNREFUSED"},
		{"no port", dial("tcp", "127.0.0.1"), "address"},
		{"a port out of range", dial("tcp", "127.0.0.1:70000"), "address"},
		{"a port that has no such name", dial("tcp", "127.0.0.1:nosuchport"), "unknown port"},
		{"no such network", dial("tpc", "127.0.0.1:1"), "unknown network"},
		{"no such socket", dial("unix", filepath.Join(t.TempDir(), "none")), "ENOENT"},
		{"no TLS", noTLS, "first record does not look like a TLS handshake"},
	} {
		if _, sign := connfail.Find(test.err); sign != test.sign {
			t.Errorf("%s: %v has the sign %q, want %q", test.name, test.err, sign, test.sign)
		}
	}
}

func TestOfSeveralAddressesTheOneThatAnsweredCounts(t *testing.T) {
	refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	noTLS := errors.New("server refused TLS connection")
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"::1 refused, 127.0.0.1 knows another password", errors.Join(refused, sqlError("28P01")), "28P01"},
		{"one is away, one says that it starts", errors.Join(refused, sqlError("57P03")), "57P03"},
		{"one has no such user, one starts", errors.Join(sqlError("28000"), sqlError("57P03")), "57P03"},
		{"one starts, one has no such user", errors.Join(sqlError("57P03"), sqlError("28000")), "57P03"},
		{"sslmode=prefer, then full", errors.Join(noTLS, sqlError("53300")), "53300"},
		{"sslmode=prefer, then gone", errors.Join(noTLS, refused), "ECONNREFUSED"},
		{"no TLS at all", errors.Join(noTLS, noTLS), "server refused TLS connection"},
		{"one refused, one with another's certificate",
			errors.Join(refused, x509.HostnameError{Certificate: &x509.Certificate{}}), "x509"},
		{"deep down", fmt.Errorf("a: %w", errors.Join(errors.New("b"), fmt.Errorf("c: %w", errors.Join(sqlError("28P01"))))),
			"28P01"},
	} {
		if _, sign := connfail.Find(test.err); sign != test.want {
			t.Errorf("%s: judged by %q, want %q", test.name, sign, test.want)
		}
	}
}

func TestWhoKnowsBetterGoesFirst(t *testing.T) {
	always := func(o abate.Outcome) func(error) abate.Outcome { return func(error) abate.Outcome { return o } }
	wrong := sqlError("28P01")
	for _, test := range []struct {
		name     string
		classify func(error) abate.Outcome
		err      error
		want     connfail.Decision
	}{
		{"nobody else", nil, wrong, final},
		{"the policy's Classify", always(abate.Outcome{Class: abate.Failure}), wrong, again},
		{"a mark", nil, abate.Ignore(wrong), answer},
		{"a mark further in", nil, fmt.Errorf("dial: %w", abate.RetryAfter(wrong, 0)), slower},
		{"another guard", nil, &abate.Error{Guard: "inner", Reason: abate.ErrCircuitOpen, Err: sqlError("57P03")}, answer},
	} {
		p := abate.ConnectionPolicy()
		p.Classify = test.classify
		g, err := abate.New("db", p)
		if err != nil {
			t.Fatal(err)
		}
		for what, mark := range map[string]func(*abate.Guard, error) error{
			"opening": connfail.Mark, "statement": connfail.MarkStatement,
		} {
			if got := decision(g.Judge(mark(g, test.err))); got != test.want {
				t.Errorf("%s, %s: %s, want %s", test.name, what, got, test.want)
			}
			if mark(g, nil) != nil {
				t.Errorf("%s, %s: no error became one", test.name, what)
			}
		}
	}
}

func TestARefusalOfTheGuardIsExplainedAsOne(t *testing.T) {
	refusal := &abate.Error{Guard: "db", Reason: abate.ErrCircuitOpen}
	if got := connfail.Explain(refusal); !strings.Contains(got, "circuit open") || !strings.Contains(got, "sent nothing") {
		t.Errorf("%q", got)
	}
	if got := connfail.Explain(&abate.Error{
		Guard: "db", Reason: abate.ErrAttemptsExhausted, Attempts: 3, Err: sqlError("57P03"),
	}); !strings.HasPrefix(got, "the server takes no connections now (57P03)") {
		t.Errorf("%q", got)
	}
}

func TestRulesAreWhole(t *testing.T) {
	seen := make(map[string]string)
	for _, r := range connfail.Rules {
		if r.Name == "" || r.Hint == "" || r.Opening == "" || r.Statement == "" || len(r.Signs) == 0 {
			t.Errorf("a rule with a hole: %+v", r)
		}
		for _, sign := range r.Signs {
			if other, twice := seen[sign]; twice {
				t.Errorf("%q is a sign of %q and of %q", sign, other, r.Name)
			}
			seen[sign] = r.Name
		}
	}
}
