Kind = "service-router"
Name = "stock"
Routes = [
  {
    Match { HTTP { PathPrefix = "/v1" } }
    Destination {
      RequestTimeout = "2s"
      NumRetries     = 1
      RetryOn        = ["connect-failure"]
    }
  },
]
