package proxy_test

import (
	"context"
	"sync"
	"testing"
)

// A service that leaves the file, or stays without upstreams, has served the requests that were on their way to it.
func TestARequestFindsItsServiceWhenAReloadRenamesIt(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	s := echo(t)
	files := []string{
		"services: {s: {upstreams: [\"" + s.url + "\"], routes: [{path: /}]}}\n",
		"services: {t: {upstreams: [\"" + s.url + "\"], routes: [{path: /}]}}\n",
		"services: {s: {upstreams: [\"" + s.url + "\"], routes: [{path: /}], maxRetries: 1}}\n",
		"services: {t: {upstreams: [\"" + s.url + "\"], routes: [{path: /}]}, s: }\n",
	}
	r := start(t, files[0])
	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for n, c := 0, r.dial(); ctx.Err() == nil; n++ {
				if n%100 == 99 { // a connection has one deadline, and a busy machine takes long
					c.Close()
					c = r.dial()
				}
				if a := c.get("/"); a.status != 200 {
					t.Errorf("%d %s", a.status, a.content)
					return
				}
			}
		})
	}
	for i := range 600 {
		r.write(files[i%len(files)])
		if err := r.proxy.Reload(); err != nil {
			t.Error(err)
		}
	}
	stop()
	load.Wait()
}
