# Two groups of a job, whose sidecars Nomad registers with Consul.
job "shop" {
  group "till" {
    service {
      name = "till"
      port = "8080"
      connect {
        sidecar_service {
          proxy {
            upstreams {
              destination_name = "ledger"
              local_bind_port  = 9001
              config {
                limits { max_connections = 10, max_pending_requests = 10, max_concurrent_requests = 20 }
                passive_health_check { max_failures = 3, max_ejection_percent = 50 }
              }
            }
            upstreams {
              destination_name = "stock"
              local_bind_port  = 9002
            }
          }
        }
      }
    }
  }
  group "ledger" {
    service {
      name = "ledger"
      connect {
        sidecar_service {
          proxy {
            upstreams {
              destination_name = "journal"
              local_bind_port  = 9003
            }
          }
        }
      }
    }
  }
}
