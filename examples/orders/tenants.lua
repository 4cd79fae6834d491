-- For wrk: requests of a thousand tenants, so that no tenant's limit is what holds them back.
request = function()
	return wrk.format("GET", "/orders", { ["X-Tenant"] = "tenant-" .. math.random(1000) })
end
