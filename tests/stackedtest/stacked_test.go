package stackedtest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sso"
	resty2 "github.com/go-resty/resty/v2"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/redis/go-redis/v9"
	resty3 "resty.dev/v3"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
)

const url = "http://down.test/"

// caller makes one user's call through a library, above transport.
type caller func(ctx context.Context, transport http.RoundTripper)

func awsSDK(change func(*sso.Options)) caller {
	return func(ctx context.Context, transport http.RoundTripper) {
		o := sso.Options{
			Region: "eu-central-1", BaseEndpoint: aws.String(url), HTTPClient: &http.Client{Transport: transport},
		}
		if change != nil {
			change(&o)
		}
		_, _ = sso.New(o).GetRoleCredentials(ctx, &sso.GetRoleCredentialsInput{
			AccessToken: aws.String("token"), AccountId: aws.String("1"), RoleName: aws.String("role"),
		})
	}
}

func restyV2(retries int, timeout time.Duration) caller {
	return func(ctx context.Context, transport http.RoundTripper) {
		c := resty2.New().SetTransport(transport).SetRetryCount(retries).SetTimeout(timeout).
			AddRetryCondition(func(r *resty2.Response, _ error) bool { return r.StatusCode() >= 500 })
		_, _ = c.R().Get(url)
	}
}

func restyV3(retries int, change func(*resty3.Client)) caller {
	return func(ctx context.Context, transport http.RoundTripper) {
		c := resty3.New().SetTransport(transport).SetRetryCount(retries)
		defer c.Close()
		c.AddRetryConditions(func(r *resty3.Response, _ error) bool { return r.StatusCode() >= 500 })
		if change != nil {
			change(c)
		}
		_, _ = c.R().SetContext(ctx).Get(url)
	}
}

func retryable(change func(*retryablehttp.Client)) caller {
	return func(ctx context.Context, transport http.RoundTripper) {
		c := retryablehttp.NewClient()
		c.Logger, c.HTTPClient = nil, &http.Client{Transport: transport}
		if change != nil {
			change(c)
		}
		if resp, err := c.Get(url); err == nil {
			resp.Body.Close()
		}
	}
}

// down fails what it is sent.
type down struct{ sent atomic.Int64 }

func (d *down) RoundTrip(r *http.Request) (*http.Response, error) {
	d.sent.Add(1)
	w := httptest.NewRecorder()
	w.WriteHeader(503)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// attempts is what so many calls, of users who come one after the other, send to a service that is down, in virtual
// time. Without a guard that is what the library does by itself.
func attempts(t *testing.T, policy *abate.Policy, users int, call caller) (sent int) {
	synctest.Test(t, func(t *testing.T) {
		d := new(down)
		var transport http.RoundTripper = d
		if policy != nil {
			g, err := abate.New("payments", *policy)
			if err != nil {
				t.Fatal(err)
			}
			transport = abatehttp.NewTransport(d, g)
		}
		for range users {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			call(ctx, transport)
			cancel()
		}
		sent = int(d.sent.Load())
	})
	return sent
}

// Each library with its own defaults, or three retries where it has none by default.
func TestStackedRetriersSendAFifthMoreAtMost(t *testing.T) {
	const users = 200
	for name, c := range map[string]struct {
		call  caller
		alone int // attempts of a call without us
	}{
		"AWS SDK v2":                  {awsSDK(nil), 3},
		"resty v2":                    {restyV2(3, 0), 4},
		"resty v2, with a time limit": {restyV2(3, time.Minute), 4},
		"resty v3, under a deadline":  {restyV3(3, nil), 4},
		"go-retryablehttp":            {retryable(nil), 5},
		"go-retryablehttp, with a limit": {retryable(func(c *retryablehttp.Client) {
			c.HTTPClient.Timeout = time.Minute
		}), 5},
		"resty v3, which says its number": {restyV3(3, tellNumber), 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := attempts(t, nil, 3, c.call); n != 3*c.alone {
				t.Fatalf("%d attempts of 3 calls without a guard, want %d: it is not stacked", n, 3*c.alone)
			}
			policy := abate.DefaultPolicy()
			if n := attempts(t, &policy, users, c.call); n > users*12/10 {
				t.Errorf("%d attempts of %d calls under the default policy", n, users)
			}
			policy.CircuitBreaker.Disabled = true // which hides what the budget does
			if n := attempts(t, &policy, users, c.call); n < users || n > users*12/10 {
				t.Errorf("%d attempts of %d calls without a circuit breaker", n, users)
			}
		})
	}
}

// tellNumber is what docs/stacked.md says for resty v3.
func tellNumber(c *resty3.Client) {
	c.AddRequestMiddleware(func(_ *resty3.Client, r *resty3.Request) error {
		r.SetHeader("X-Envoy-Attempt-Count", strconv.Itoa(r.Attempt))
		return nil
	})
}

// The lines that docs/stacked.md gives: with them a library sends once, and the guard decides about the rest.
func TestTheOneLinersSwitchTheirRetriesOff(t *testing.T) {
	for name, call := range map[string]caller{
		"AWS SDK v2": awsSDK(func(o *sso.Options) { o.Retryer = aws.NopRetryer{} }),
		"resty v2": func(_ context.Context, transport http.RoundTripper) {
			client := resty2.New().SetTransport(transport).SetRetryCount(3).
				AddRetryCondition(func(r *resty2.Response, _ error) bool { return r.StatusCode() >= 500 })
			client.SetRetryCount(0)
			_, _ = client.R().Get(url)
		},
		"resty v3":         restyV3(3, func(client *resty3.Client) { client.SetRetryCount(0) }),
		"go-retryablehttp": retryable(func(client *retryablehttp.Client) { client.RetryMax = 0 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := attempts(t, nil, 5, call); n != 5 {
				t.Errorf("%d attempts of 5 calls", n)
			}
			policy := abate.DefaultPolicy()
			if n := attempts(t, &policy, 10, call); n < 11 {
				t.Errorf("%d attempts of 10 calls under a guard: it retries no more either", n)
			}
		})
	}
}

// redisDown is a server that loads its data, and says so to every command: go-redis tries that again.
func redisDown(t *testing.T) (address string, commands *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	commands = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answer(conn, commands)
		}
	}()
	return l.Addr().String(), commands
}

func answer(conn net.Conn, commands *atomic.Int64) {
	defer conn.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if n > 0 && buffer[0] == '*' && contains(buffer[:n], "get") {
			commands.Add(1)
		}
		if _, err := io.WriteString(conn, "-LOADING Redis is loading the dataset in memory\r\n"); err != nil {
			return
		}
	}
}

func contains(b []byte, word string) bool {
	for i := 0; i+len(word) <= len(b); i++ {
		if string(b[i:i+len(word)]) == word {
			return true
		}
	}
	return false
}

// go-redis repeats commands on its own connections, where no guard sees them: MaxRetries: -1 is the only cure.
func TestTheOneLinerSwitchesTheRetriesOfGoRedisOff(t *testing.T) {
	for name, c := range map[string]struct {
		options func(*redis.Options)
		sent    int64
	}{
		"by default":    {func(*redis.Options) {}, 4},
		"the one-liner": {func(options *redis.Options) { options.MaxRetries = -1 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			address, commands := redisDown(t)
			options := &redis.Options{
				Addr: address, DisableIdentity: true, Protocol: 2, MinRetryBackoff: -1, MaxRetryBackoff: -1,
			}
			c.options(options)
			client := redis.NewClient(options)
			defer client.Close()
			if err := client.Get(t.Context(), "k").Err(); err == nil || errors.Is(err, redis.Nil) {
				t.Fatal(err)
			}
			if n := commands.Load(); n != c.sent {
				t.Errorf("%d commands of one call, want %d", n, c.sent)
			}
		})
	}
}
