// Package viaproxy starts the proxies of "abate drill --via proxy".
package viaproxy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy"
)

// Start starts a proxy for one client of the drill.
func Start(policy []byte, observer abate.Observer) (*url.URL, func(), error) {
	file, err := os.CreateTemp("", "abate-drill-*.yaml")
	if err != nil {
		return nil, nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(policy)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, nil, err
	}
	p, err := proxy.New(proxy.Config{
		Policy: file.Name(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Adjust: func(_ string, policy *abate.Policy) { policy.Observer = observer },
	})
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = p.Shutdown(context.Background()) // it has no clients yet
		return nil, nil, err
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	end := func() {
		now, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Shutdown(now) // the act is over: who is left is cut off
		<-served
	}
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, end, nil
}
