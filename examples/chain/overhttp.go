package main

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
)

// overHTTP is HTTP/1.1.
type overHTTP struct{}

const userHeader = "X-User-Request"

func (overHTTP) serve(g *inbound.Gate, answer ask) (string, func(), error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := answer(r.Context(), r.Header.Get(userHeader)); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	if g != nil {
		handler = abatehttp.NewHandler(g, handler)
	}
	server := &http.Server{Handler: handler}
	go server.Serve(listener)
	return "http://" + listener.Addr().String(), func() { server.Close() }, nil
}

func (overHTTP) dial(address string, g *abate.Guard) (ask, func(), error) {
	client := &http.Client{Transport: new(http.Transport)}
	if g != nil {
		client.Transport = abatehttp.NewTransport(client.Transport, g)
	}
	return func(ctx context.Context, user string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		req.Header.Set(userHeader, user)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}, client.CloseIdleConnections, nil
}
