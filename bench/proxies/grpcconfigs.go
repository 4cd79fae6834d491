package main

import "fmt"

// streamsEach is how many streams a proxy allows on a connection: what Go's HTTP/2 server does.
const streamsEach = 250

// nginxGRPCConfig is nginx as a proxy of gRPC. It speaks HTTP/2 to the upstream with one stream at a time on a
// connection.
func nginxGRPCConfig(addr, upstream string, clients int) string {
	return nginxMain(2, clients) + fmt.Sprintf(`  upstream up {
    server %s;
    keepalive %d;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
  }
  server {
    listen %s http2 backlog=4096;
    http2_max_concurrent_streams %d;
    client_max_body_size 0;
    client_body_timeout 1h;
    location / {
      grpc_pass grpc://up;
      grpc_buffer_size %d;
      grpc_read_timeout 1h;
      grpc_send_timeout 1h;
    }
  }
}
`, upstream, 4*connections, addr, streamsEach, copyBuffer)
}

// haproxyGRPCConfig is haproxyConfig with HTTP/2 on both sides.
func haproxyGRPCConfig(addr, upstream string, clients int) string {
	streams := fmt.Sprintf("  tune.h2.max-concurrent-streams %d\n", streamsEach)
	return haproxyWith(addr, upstream, clients, streams, " proto h2")
}
