// dotnet run PlaceCall.cs CAMPAIGN ORDER PHONE
using System;
using System.Linq;
using System.Net.Http;
using System.Text;
using System.Threading.Tasks;

class PlaceCall
{
    static readonly HttpClient client =
        new HttpClient(new HttpClientHandler { AllowAutoRedirect = false }) { Timeout = TimeSpan.FromSeconds(10) };

    static async Task<string> Place(string campaign, string order, string phone)
    {
        var url = Environment.GetEnvironmentVariable("CALLKEY_SERVER") + "/api/v1/campaigns/" + campaign + "/contacts/on-demand";
        var random = new Random();
        for (var attempt = 0; attempt < 8; attempt++)
        {
            var pause = Math.Min(8, 0.25 * (1 << attempt)) * (0.5 + random.NextDouble() / 2);
            var request = new HttpRequestMessage(HttpMethod.Post, url);
            request.Headers.Add("X-API-Key", Environment.GetEnvironmentVariable("CALLKEY_API_KEY"));
            request.Headers.Add("Idempotency-Key", "order-" + order);
            request.Content = new StringContent("{\"contact\":{\"phone\":\"" + phone + "\"}}", Encoding.UTF8, "application/json");
            try
            {
                var answer = await client.SendAsync(request);
                var body = await answer.Content.ReadAsStringAsync();
                var status = (int)answer.StatusCode;
                if (status == 202) return body;
                if (!new[] { 429, 502, 503, 504 }.Contains(status)) throw new InvalidOperationException(status + ": " + body);
                var requested = answer.Headers.RetryAfter?.Delta?.TotalSeconds ?? 0;
                if (requested > 60) throw new InvalidOperationException("The server asks you to wait " + requested + " s. Run this again after that.");
                pause = Math.Max(pause, requested);
            }
            catch (HttpRequestException)
            {
                // No response, or an incomplete one.
            }
            catch (TaskCanceledException)
            {
                // No response in time.
            }
            await Task.Delay(TimeSpan.FromSeconds(pause));
        }
        throw new InvalidOperationException("No response. Run it again: it sends the same request ID.");
    }

    static int Main(string[] args)
    {
        try
        {
            Console.Write(Place(args[0], args[1], args[2]).GetAwaiter().GetResult());
            return 0;
        }
        catch (InvalidOperationException error)
        {
            Console.Error.WriteLine(error.Message);
            return 1;
        }
    }
}
