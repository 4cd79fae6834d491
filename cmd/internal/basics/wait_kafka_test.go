package basics

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/internal/needs/kafka"
)

// loopbackCertificate is an authority's certificate, its own server's, and both as PEM.
func loopbackCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "a broker"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// waitsFor runs "abate wait" for one target and compares how that ends.
func waitsFor(t *testing.T, what, target string, code int, want string) {
	t.Helper()
	got, stderr := runWait(t.Context(), nil, target, "--timeout", "30s")
	if got != code || !strings.Contains(stderr, want) || strings.Contains(stderr, "hunter") {
		t.Errorf("%s: exit code %d, want %d and %q\n%s", what, got, code, want, stderr)
	}
}

func TestWaitLogsInToKafka(t *testing.T) {
	certificate, key := loopbackCertificate(t)
	ca := clitest.Put(t, "ca.pem", string(certificate))
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	users := []kfake.Opt{kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "hunter-right"),
		kfake.Superuser("SCRAM-SHA-256", "app", "hunter-right"), kfake.Superuser("SCRAM-SHA-512", "app", "hunter-right")}
	start := func(more ...kfake.Opt) string {
		c, err := kfake.NewCluster(append(users, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c.ListenAddrs()[0]
	}
	open, secure := start(), start(kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
	for _, how := range []string{"", "?sasl=plain", "?sasl=SCRAM-SHA-256", "?sasl=scram-sha-512"} {
		waitsFor(t, "a login"+how, "kafka://app:hunter-right@"+open+how, 0, "is there")
	}
	waitsFor(t, "TLS", "kafka+ssl://app:hunter-right@"+secure+"?ca="+ca, 0, "is there")
	waitsFor(t, "an authority that nobody knows", "kafka+ssl://app:hunter-right@"+secure,
		1, "permanent failure after 1 attempt")
}

func TestWaitTellsEverythingThatIsWrongWithAKafkaAddress(t *testing.T) {
	empty := clitest.Put(t, "empty.pem", "nothing\n")
	for target, want := range map[string][]string{
		"kafka://a?tls=true":   {"?tls is not known"},
		"kafka://a?sasl=plain": {"a login needs a user: write kafka://USER:PASSWORD@HOST:PORT"},
		"kafka://:p@a":         {"a login needs a user"},
		"kafka://u:p@a/x?sasl=digest&ca=x": {
			"kafka:// is a list of HOST:PORT", "?sasl=digest is not known: there are plain", "?ca is for kafka+ssl://",
		},
		"kafka+ssl://a:x?ca=" + empty:              {`"x" is not a port`, "empty.pem has no certificate in PEM"},
		"kafka+ssl://a?ca=" + empty + ".not":       {"?ca: open "},
		"kafka://u:p@a?sasl=plain&sasl=plain":      {"?sasl is not known, or there twice"},
		"kafka+ssl://u:long-word@a?sasl=long-word": {"?sasl=xxxxx is not known"},
	} {
		_, err := everything.parseTarget(target)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", target, err, part)
			}
		}
	}
}

// A real broker that lets nobody in without a login, over TLS or not.
func TestWaitLogsInToARealKafka(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	certificate, key := loopbackCertificate(t)
	ca := clitest.Put(t, "ca.pem", string(certificate))
	inOneLine := func(p []byte) string { return strings.ReplaceAll(strings.TrimSpace(string(p)), "\n", `\n`) }
	login, _ := later(t)
	secure, _ := later(t)
	lines := []string{
		fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:{clients},CONTROLLER://127.0.0.1:{controller},LOGIN://%s,SECURE://%s",
			login, secure),
		fmt.Sprintf("advertised.listeners=PLAINTEXT://127.0.0.1:{clients},LOGIN://%s,SECURE://%s", login, secure),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT,SECURE:SASL_SSL",
		"listener.name.secure.ssl.keystore.type=PEM",
		"listener.name.secure.ssl.keystore.certificate.chain=" + inOneLine(certificate),
		"listener.name.secure.ssl.keystore.key=" + inOneLine(key),
	}
	for _, listener := range []string{"login", "secure"} {
		lines = append(lines, "listener.name."+listener+".sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
			"listener.name."+listener+`.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule `+
				`required user_app="hunter-right";`,
			"listener.name."+listener+".scram-sha-512.sasl.jaas.config="+
				"org.apache.kafka.common.security.scram.ScramLoginModule required;")
	}
	b := kafka.Start(t, lines...)
	addScramUser(t, b.Addr())
	waitsFor(t, "no login where none is needed", "kafka://"+b.Addr(), 0, "is there")
	waitsFor(t, "PLAIN", "kafka://app:hunter-right@"+login, 0, "is there")
	waitsFor(t, "SCRAM", "kafka://app:hunter-right@"+login+"?sasl=scram-sha-512", 0, "is there")
	waitsFor(t, "a wrong password", "kafka://app:hunter-wrong@"+login,
		1, "wrong user or password (SASL_AUTHENTICATION_FAILED)")
	waitsFor(t, "a wrong password in SCRAM", "kafka://app:hunter-wrong@"+login+"?sasl=scram-sha-512",
		1, "wrong user or password (SASL_AUTHENTICATION_FAILED)")
	waitsFor(t, "a mechanism that is not enabled", "kafka://app:hunter-right@"+login+"?sasl=scram-sha-256",
		1, "UNSUPPORTED_SASL_MECHANISM")
	waitsFor(t, "TLS", "kafka+ssl://app:hunter-right@"+secure+"?ca="+filepath.ToSlash(ca), 0, "is there")
	waitsFor(t, "an authority that nobody knows", "kafka+ssl://app:hunter-right@"+secure,
		1, "a certificate that is not trusted")
	waitsFor(t, "no TLS where there is some", "kafka://app:hunter-right@"+secure,
		1, "the server asks for TLS (tls alert record)")
}

func addScramUser(t *testing.T, address string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	done, err := kadm.NewClient(client).AlterUserSCRAMs(t.Context(), nil,
		[]kadm.UpsertSCRAM{{User: "app", Mechanism: kadm.ScramSha512, Iterations: 4096, Password: "hunter-right"}})
	if err == nil {
		err = done.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}
