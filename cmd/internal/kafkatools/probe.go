package kafkatools

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/cmd/internal/address"
)

// Probe asks the brokers for metadata, until one answers. It logs in before if the address has a user.
func Probe(a *address.Address) (func(context.Context) error, error) {
	hosts, err := a.List("9092")
	problems := []error{err}
	if strings.Trim(a.Path, "/") != "" {
		problems = append(problems, fmt.Errorf("%s:// is a list of HOST:PORT and nothing else", a.Scheme))
	}
	for _, key := range slices.Sorted(maps.Keys(a.Query)) {
		if key != "sasl" && key != "ca" || len(a.Query[key]) > 1 {
			problems = append(
				problems, fmt.Errorf("?%s is not known, or there twice: there are sasl=plain, scram-sha-256 or scram-sha-512, "+
					"and ca=FILE", key))
		}
	}
	login, err := kafkaLogin(a)
	problems = append(problems, err)
	encryption, err := kafkaTLS(a)
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	options := slices.Concat([]kgo.Opt{kgo.SeedBrokers(hosts...), kgo.DisableClientMetrics(), kgo.RequestRetries(0)},
		login, encryption)
	return func(ctx context.Context) error {
		client, err := kgo.NewClient(options...)
		if err != nil {
			return abate.Permanent(err)
		}
		return address.Until(ctx, client.Close, func() error { return client.Ping(ctx) })
	}, nil
}

// kafkaLogin is how the user and the password are given.
func kafkaLogin(a *address.Address) ([]kgo.Opt, error) {
	how := strings.ToLower(a.Query.Get("sasl"))
	switch {
	case a.User == "" && (how != "" || a.Password != ""):
		return nil, fmt.Errorf("a login needs a user: write %s://USER:PASSWORD@HOST:PORT", a.Scheme)
	case a.User == "":
		return nil, nil
	case a.Password == "":
		return nil, fmt.Errorf("a login needs a password: write %s://USER:PASSWORD@HOST:PORT", a.Scheme)
	}
	var mechanism sasl.Mechanism
	switch how {
	case "", "plain":
		mechanism = plain.Auth{User: a.User, Pass: a.Password}.AsMechanism()
	case "scram-sha-256":
		mechanism = scram.Auth{User: a.User, Pass: a.Password}.AsSha256Mechanism()
	case "scram-sha-512":
		mechanism = scram.Auth{User: a.User, Pass: a.Password}.AsSha512Mechanism()
	default:
		return nil, fmt.Errorf("?sasl=%s is not known: there are plain (if none is written), scram-sha-256 and scram-sha-512",
			how)
	}
	return []kgo.Opt{kgo.SASL(mechanism)}, nil
}

// kafkaTLS is how the connection is encrypted, for kafka+ssl.
func kafkaTLS(a *address.Address) ([]kgo.Opt, error) {
	file := a.Query.Get("ca")
	switch {
	case a.Scheme == "kafka" && file != "":
		return nil, errors.New("?ca is for kafka+ssl://, which is Kafka with TLS")
	case a.Scheme == "kafka":
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("?ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("?ca: %s has no certificate in PEM", file)
		}
	}
	return []kgo.Opt{kgo.DialTLSConfig(config)}, nil
}

// Probers are those of this package, by scheme.
func Probers() map[string]address.Prober {
	return map[string]address.Prober{"kafka": Probe, "kafka+ssl": Probe}
}
