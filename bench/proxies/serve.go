package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// serveWord as the first argument makes this command one of the programs that it measures.
const serveWord = "serve"

// overGRPC begins the names of the parts that speak gRPC.
const overGRPC = "grpc-"

// copyBuffer is the size in bytes of the buffers that bodies go through, for every target that lets it be chosen.
const copyBuffer = 32 * kib

// serve runs a part: serve PART ADDRESS [UPSTREAM]. It returns only when it fails.
func serve(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: serve upstream|httputil|fasthttp|grpc-upstream|grpc-httputil ADDRESS [UPSTREAM]")
	}
	part, addr, upstream := args[0], args[1], args[len(args)-1]
	switch part {
	case "upstream":
		return listen(addr, http.HandlerFunc(answer))
	case "httputil":
		return listen(addr, reverseProxy(upstream))
	case "fasthttp":
		return fastProxy(upstream).ListenAndServe(addr)
	case overGRPC + "upstream":
		return serveEcho(addr)
	case overGRPC + "httputil":
		return listenHTTP2(addr, reverseProxyHTTP2(upstream))
	}
	return fmt.Errorf("serve: there is no part %q", part)
}

func listen(addr string, h http.Handler) error {
	s := &http.Server{Addr: addr, Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	return s.ListenAndServe()
}

var (
	smallBody = make([]byte, bodySize)
	largeBody = make([]byte, 256*kib)
)

// answer is the upstream: the small body, or as many bytes as the query asks for, chunked if it says so.
func answer(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	left, err := strconv.ParseInt(query.Get("bytes"), 10, 64)
	if err != nil {
		w.Header().Set("Content-Length", strconv.Itoa(bodySize))
		_, _ = w.Write(smallBody) // a client that went away is no error of the upstream
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if !query.Has("chunked") {
		w.Header().Set("Content-Length", strconv.FormatInt(left, 10))
	}
	for left > 0 {
		n, err := w.Write(largeBody[:min(left, int64(len(largeBody)))])
		if err != nil {
			return
		}
		left -= int64(n)
	}
}

// reverseProxy is the standard library's proxy with the settings that cost it least.
func reverseProxy(upstream string) http.Handler {
	to := &url.URL{Scheme: "http", Host: upstream}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 4 * connections,
			IdleConnTimeout:     time.Hour,
			DisableCompression:  true,
		},
		BufferPool: &buffers{},
		ErrorLog:   log.New(io.Discard, "", 0),
	}
}

// buffers is a pool for httputil.ReverseProxy.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[]byte); ok {
		return *kept
	}
	return make([]byte, copyBuffer)
}

func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }

// fastProxy is fasthttp on both sides. It reads a whole body before it passes it on, so it takes no part in streaming.
func fastProxy(upstream string) *fasthttp.Server {
	client := &fasthttp.HostClient{
		Addr:                     upstream,
		MaxConns:                 4 * connections,
		MaxIdleConnDuration:      time.Hour,
		NoDefaultUserAgentHeader: true,
	}
	return &fasthttp.Server{
		NoDefaultServerHeader: true,
		NoDefaultDate:         true,
		NoDefaultContentType:  true,
		Logger:                log.New(io.Discard, "", 0),
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Request.Header.Del("Connection")
			if err := client.Do(&ctx.Request, &ctx.Response); err != nil {
				ctx.Error("bad gateway", fasthttp.StatusBadGateway)
				return
			}
			ctx.Response.Header.Del("Connection")
		},
	}
}
