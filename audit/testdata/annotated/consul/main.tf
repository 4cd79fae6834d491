resource "consul_config_entry" "mail" {
  name = "mail"
  kind = "service-router"
  config_json = jsonencode({
    Routes = [{
      Destination = { RequestTimeout = "2s", NumRetries = 5 } # want F602
    }]
  })
}
