kind = "service-router"
name = "journal"
routes = [{
  destination {
    request_timeout          = "4s"
    num_retries              = 12 # want F101
    retry_on_connect_failure = true
  }
}]
