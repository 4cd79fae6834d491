package kafkatools

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/cmd/internal/cli"
)

// dlqConnection are the flags that say how to reach the brokers.
type dlqConnection struct {
	brokers, ca, cert, key, sasl, user, passwordFile string
	tls                                              bool
}

// define adds the flags, and those of the topic.
func (c *dlqConnection) define(set *flag.FlagSet, config *dlq.Config) {
	for name, to := range map[string]*string{
		"ca": &c.ca, "cert": &c.cert, "key": &c.key, "sasl": &c.sasl, "user": &c.user, "password-file": &c.passwordFile,
		"topic": &config.Topic, "audit": &config.Audit, "by": &config.By, "consumer-group": &config.Group,
	} {
		set.StringVar(to, name, "", "")
	}
	set.StringVar(&c.brokers, "brokers", os.Getenv("ABATE_BROKERS"), "")
	set.BoolVar(&c.tls, "tls", false, "")
}

// finish reads what the flags name and reports everything that is wrong.
func (c *dlqConnection) finish(config *dlq.Config) error {
	var wrong []error
	for broker := range strings.SplitSeq(c.brokers, ",") {
		if broker = strings.TrimSpace(broker); cli.IsAddress(broker) && !strings.HasPrefix(broker, ":") {
			config.Brokers = append(config.Brokers, broker)
		} else if broker != "" {
			wrong = append(
				wrong, fmt.Errorf("--brokers: %q is not an address: write host:port, for example localhost:9092", broker))
		}
	}
	if len(config.Brokers) == 0 && len(wrong) == 0 {
		wrong = append(
			wrong, errors.New("--brokers is missing: write at least one address, for example --brokers localhost:9092, or set "+
				"ABATE_BROKERS"))
	}
	if c.tls || c.ca != "" || c.cert != "" || c.key != "" {
		t, err := c.tlsConfig()
		wrong = append(wrong, err)
		config.Options = append(config.Options, kgo.DialTLSConfig(t))
	}
	if c.sasl != "" || c.user != "" || c.passwordFile != "" {
		option, err := c.saslOption()
		if wrong = append(wrong, err); err == nil {
			config.Options = append(config.Options, option)
		}
	}
	return errors.Join(wrong...)
}

func (c *dlqConnection) tlsConfig() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	var wrong []error
	if c.ca != "" {
		pem, err := os.ReadFile(c.ca)
		t.RootCAs = x509.NewCertPool()
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--ca: %w", err))
		} else if !t.RootCAs.AppendCertsFromPEM(pem) {
			wrong = append(wrong, fmt.Errorf("--ca: there is no certificate in %s: it must be PEM", c.ca))
		}
	}
	switch {
	case (c.cert == "") != (c.key == ""):
		wrong = append(wrong, errors.New("--cert and --key belong together: give both or none"))
	case c.cert != "":
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--cert, --key: %w", err))
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, errors.Join(wrong...)
}

func (c *dlqConnection) saslOption() (kgo.Opt, error) {
	var wrong []error
	if c.user == "" {
		wrong = append(wrong, errors.New("--user is missing: --sasl needs it"))
	}
	var password string
	if c.passwordFile == "" {
		wrong = append(wrong, errors.New("--password-file is missing: --sasl needs it"))
	} else if text, err := os.ReadFile(c.passwordFile); err != nil {
		wrong = append(wrong, fmt.Errorf("--password-file: %w", err))
	} else {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		password = strings.TrimSuffix(string(line), "\r")
	}
	var option kgo.Opt
	switch c.sasl {
	case "plain":
		option = kgo.SASL(plain.Auth{User: c.user, Pass: password}.AsMechanism())
	case "scram-256":
		option = kgo.SASL(scram.Auth{User: c.user, Pass: password}.AsSha256Mechanism())
	case "scram-512":
		option = kgo.SASL(scram.Auth{User: c.user, Pass: password}.AsSha512Mechanism())
	default:
		wrong = append(wrong, fmt.Errorf("--sasl: %q is not known: write plain, scram-256 or scram-512", c.sasl))
	}
	return option, errors.Join(wrong...)
}

// dlqFlags are the words of a command of "abate dlq".
type dlqFlags struct {
	dlqConnection
	action string
	config dlq.Config
	filter dlq.Filter
	words  []string
	json   bool

	from, to, offsets string

	letters, full, yes, dryRun, again bool
	edit, out, id                     string
	replay                            dlq.Replay
	given                             map[string]bool
}

// parseDLQ reads the words of a command. The error is flag.ErrHelp, or reports everything that is wrong.
func parseDLQ(a *dlqAction, args []string) (*dlqFlags, error) {
	f := &dlqFlags{action: a.name, filter: dlq.All(), given: map[string]bool{}}
	set := flag.NewFlagSet(a.name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f.dlqConnection.define(set, &f.config)
	set.BoolVar(&f.json, "json", false, "")
	if a.filters {
		f.defineFilter(set)
	}
	if a.define != nil {
		a.define(f, set)
	}
	words, err := cli.ParseAll(set, args)
	if err != nil {
		return nil, err
	}
	f.words, f.config.AllowEdit = words, f.edit != ""
	set.Visit(func(g *flag.Flag) { f.given[g.Name] = true })
	wrong := []error{f.dlqConnection.finish(&f.config)}
	if len(words) > a.most {
		wrong = append(wrong, fmt.Errorf("%q is a word too many: it takes %s besides its flags", words[a.most],
			cli.Count(a.most, "word")))
	}
	if a.filters {
		wrong = append(wrong, f.finishFilter(time.Now()))
	}
	return f, errors.Join(wrong...)
}

func (f *dlqFlags) defineFilter(set *flag.FlagSet) {
	set.StringVar(&f.filter.Group, "group", "", "")
	set.StringVar(&f.filter.Where, "where", "", "")
	set.StringVar(&f.from, "from", "", "")
	set.StringVar(&f.to, "until", "", "")
	set.StringVar(&f.offsets, "offsets", "", "")
	set.StringVar((*string)(&f.filter.State), "state", "", "")
	set.IntVar(&f.filter.Max, "max", 0, "")
	set.Func("partition", "", func(s string) error {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not the number of a partition", s)
		}
		f.filter.Partition = int32(n)
		return nil
	})
}

// finishFilter reads what the flags of a filter say, and checks the expression before anybody connects.
func (f *dlqFlags) finishFilter(now time.Time) error {
	var wrong []error
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"--from", f.from, &f.filter.From}, {"--until", f.to, &f.filter.To}} {
		var err error
		if *t.to, err = readTime(t.text, now); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", t.flag, err))
		}
	}
	if f.offsets != "" {
		from, to, ok := strings.Cut(f.offsets, "..")
		a, err := strconv.ParseInt("0"+from, 10, 64)
		b, err2 := strconv.ParseInt("0"+to, 10, 64)
		if !ok || err != nil || err2 != nil || f.offsets == ".." {
			wrong = append(wrong, fmt.Errorf("--offsets: %q is not a range: write for example 100..200, 100.. or ..200",
				f.offsets))
		}
		f.filter.FromOffset, f.filter.ToOffset = a, b
	}
	if f.filter.Where != "" {
		if _, err := dlq.ParseExpression(f.filter.Where); err != nil {
			wrong = append(wrong, fmt.Errorf("--where: %w", err))
		}
	}
	if len(f.words) > 0 {
		at, err := dlq.ParsePlace(f.config.Topic, f.words[0])
		wrong = append(wrong, err)
		f.filter.Partition, f.filter.FromOffset, f.filter.ToOffset = at.Partition, at.Offset, at.Offset+1
	}
	return errors.Join(wrong...)
}

// readTime reads a time, or a duration that it was ago. Empty is no time.
func readTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write 2026-01-31T10:20:30Z, 2026-01-31 (UTC), or a duration such "+
		"as 2h for that long ago", text)
}

// desk are the flags that lead to the same topic, for commands that are suggested.
func (f *dlqFlags) desk() string {
	text := "--brokers " + f.brokers + " --topic " + f.config.Topic
	if f.config.Audit != "" {
		text += " --audit " + f.config.Audit
	}
	if f.tls || f.sasl != "" {
		text += " ..."
	}
	return text
}
