// go run place_call.go CAMPAIGN ORDER PHONE
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"time"
)

var client = http.Client{
	Timeout:       10 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func placeCall(campaign, order, phone string) (string, error) {
	url := os.Getenv("CALLKEY_SERVER") + "/api/v1/campaigns/" + campaign + "/contacts/on-demand"
	body, _ := json.Marshal(map[string]any{"contact": map[string]string{"phone": phone}})
	for attempt := 0; attempt < 8; attempt++ {
		pause := min(8, 0.25*float64(int(1)<<attempt)) * (0.5 + rand.Float64()/2)
		request, err := http.NewRequest("POST", url, bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		request.Header.Set("X-API-Key", os.Getenv("CALLKEY_API_KEY"))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", "order-"+order)
		status, answer, requested := send(request)
		switch status {
		case 202:
			return answer, nil
		case 0, 429, 502, 503, 504:
			if requested > 60 {
				return "", fmt.Errorf("The server asks you to wait %d s. Run this again after that.", requested)
			}
			time.Sleep(time.Duration(max(pause, float64(requested)) * float64(time.Second)))
		default:
			return "", fmt.Errorf("%d: %s", status, answer)
		}
	}
	return "", fmt.Errorf("No response. Run it again: it sends the same request ID.")
}

// send returns the status 0 if there's no response, or an incomplete one.
func send(request *http.Request) (status int, body string, retryAfter int) {
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", 0
	}
	defer answer.Body.Close()
	bytes, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, "", 0
	}
	retryAfter, _ = strconv.Atoi(answer.Header.Get("Retry-After"))
	return answer.StatusCode, string(bytes), retryAfter
}

func min(a, b float64) float64 {
	if a < b {
		return a
	}
	return b
}

func max(a, b float64) float64 { return -min(-a, -b) }

func main() {
	answer, err := placeCall(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(answer)
}
