package main

func Example() {
	main()
	// Output:
	// attempt 1: 502 Bad Gateway
	//   again in 77ms
	// attempt 2: 503 Service Unavailable, retry after 1s
	//   again in 1.154s
	// attempt 3: success
	// the caller sees: 200 OK, "charged", <nil>
}
