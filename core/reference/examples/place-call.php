<?php
// place-call.php CAMPAIGN ORDER PHONE
function placeCall(string $campaign, string $order, string $phone, int $attempts = 8): string
{
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => [
            'X-API-Key: ' . getenv('CALLKEY_API_KEY'),
            'Content-Type: application/json',
            "Idempotency-Key: order-$order",
        ],
        'content' => json_encode(['contact' => ['phone' => $phone]]),
        'timeout' => 10,
        'follow_location' => 0,
        'ignore_errors' => true,
    ]]);
    $url = getenv('CALLKEY_SERVER') . "/api/v1/campaigns/$campaign/contacts/on-demand";
    for ($attempt = 0; $attempt < $attempts; $attempt++) {
        $pause = min(8, 0.25 * 2 ** $attempt) * random_int(50, 100) / 100;
        $stream = @fopen($url, 'r', false, $context);
        $answer = $stream ? stream_get_contents($stream) : '';
        $headers = $stream ? implode("\n", stream_get_meta_data($stream)['wrapper_data']) : '';
        $status = preg_match('#^HTTP/\S+ (\d+)#', $headers, $match) ? (int) $match[1] : 0;
        // A complete response ends with a newline.
        if ($status === 202 && substr($answer, -1) === "\n") {
            return $answer;
        }
        if (!in_array($status, [0, 202, 429, 502, 503, 504], true)) {
            throw new RuntimeException("$status: $answer");
        }
        $requested = preg_match('/^Retry-After: (\d+)/mi', $headers, $match) ? (int) $match[1] : 0;
        if ($requested > 60) {
            throw new RuntimeException("The server asks you to wait $requested s. Run this again after that.");
        }
        usleep((int) (1e6 * max($pause, $requested)));
    }
    throw new RuntimeException('No response. Run it again: it sends the same request ID.');
}

try {
    echo placeCall(...array_slice($argv, 1));
} catch (RuntimeException $error) {
    fwrite(STDERR, $error->getMessage() . "\n");
    exit(1);
}
