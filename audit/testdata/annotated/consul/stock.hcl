# The stock, as consul config write takes it.
Kind = "service-router"
Name = "stock"
Routes = [
  {
    Match { HTTP { PathPrefix = "/v1" } }
    Destination {
      RequestTimeout = "2s"
      NumRetries     = 0 # want F604
      RetryOn        = ["connect-failure"]
    }
  },
  {
    Match { HTTP { PathPrefix = "/v2" } }
    Destination {
      request_timeout = "2s"
      num_retries     = 5
      retry_on        = ["gateway-errror"] # want F601
    }
  },
]
