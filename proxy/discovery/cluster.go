package discovery

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
)

// ServiceAccount is the folder in which Kubernetes puts what a pod needs to speak to the API server: a token, the
// authority of the server's certificate, and the pod's namespace.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Cluster is an API server of Kubernetes. All Watchers of a program share one. The zero Cluster is that of the pod.
type Cluster struct {
	// Folder has the files token, ca.crt and namespace. "" means ServiceAccount. They are read again when they change.
	Folder string
	// Server is host:port. "" means what the environment says in KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
	Server string

	once   sync.Once
	guard  *abate.Guard
	mu     sync.Mutex // guards what follows
	ca     []byte
	client *http.Client
}

func (c *Cluster) folder(name string) string {
	return filepath.Join(cmp.Or(c.Folder, ServiceAccount), name)
}

func (c *Cluster) server() (string, error) {
	if c.Server != "" {
		return c.Server, nil
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return "", fmt.Errorf("this program runs in no pod: KUBERNETES_SERVICE_HOST is not set; " +
			"use discovery type dns or file outside of a cluster")
	}
	return net.JoinHostPort(host, port), nil
}

// namespace is that of the pod.
func (c *Cluster) namespace() (string, error) {
	data, err := os.ReadFile(c.folder("namespace"))
	if err != nil {
		return "", fmt.Errorf("the pod's own namespace: %w; write discovery.namespace", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// get asks the API server, under a guard of our own: what it cannot answer is asked again within a budget, and not at
// all while it is known to be away.
func (c *Cluster) get(ctx context.Context, pathAndQuery string) (*http.Response, error) {
	server, err := c.server()
	if err != nil {
		return nil, err
	}
	client, err := c.connect()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+server+pathAndQuery, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	return client.Do(req)
}

// connect returns the client, a new one when the authority has changed.
func (c *Cluster) connect() (*http.Client, error) {
	ca, err := os.ReadFile(c.folder("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the API server's authority: %w", err)
	}
	c.once.Do(func() { c.guard, err = abate.New("kubernetes", abate.DefaultPolicy()) })
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil && bytes.Equal(ca, c.ca) {
		return c.client, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate in PEM", c.folder("ca.crt"))
	}
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	base := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: headTime, ResponseHeaderTimeout: headTime,
		// A watch is silent for minutes. Pings find out that its server is gone without a word.
		HTTP2: &http.HTTP2Config{SendPingTimeout: headTime, PingTimeout: headTime},
	}
	guarded := abatehttp.NewTransport(signed{base, c.folder("token")}, c.guard)
	guarded.OmitHeaders = true
	c.ca, c.client = ca, &http.Client{Transport: guarded}
	return c.client, nil
}

// headTime is how long the API server may take to begin an answer, and to answer a ping. Its own limit for a list is a
// minute; one that begins none in a quarter of that is asked again.
const headTime = 15 * time.Second

// close gives up the connections.
func (c *Cluster) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}

// signed adds the token to each attempt, as it is in its file at that moment: a kubelet replaces it every hour or so,
// and a server refuses the old one.
type signed struct {
	next  http.RoundTripper
	token string
}

func (s signed) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(s.token)
	if err != nil {
		return nil, fmt.Errorf("the service account's token: %w", err)
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return s.next.RoundTrip(req)
}

// CloseIdleConnections is for http.Client.
func (s signed) CloseIdleConnections() {
	if t, ok := s.next.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}
