package abatenet_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
)

func ExampleDialer() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	g, err := abate.New("search", abate.ConnectionPolicy())
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: (&abatenet.Dialer{Guard: g}).DialContext}}

	answer, err := client.Get(server.URL)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status)
	// Output: 404 Not Found
}
