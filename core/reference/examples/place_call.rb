# ruby place_call.rb CAMPAIGN ORDER PHONE
require 'json'
require 'net/http'

def place_call(campaign, order, phone, attempts: 8)
  uri = URI("#{ENV['CALLKEY_SERVER']}/api/v1/campaigns/#{campaign}/contacts/on-demand")
  headers = {
    'X-API-Key' => ENV['CALLKEY_API_KEY'],
    'Content-Type' => 'application/json',
    'Idempotency-Key' => "order-#{order}"
  }
  body = JSON.generate(contact: { phone: phone })
  attempts.times do |attempt|
    pause = [8, 0.25 * 2**attempt].min * rand(0.5..1.0)
    begin
      answer = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https', open_timeout: 5, read_timeout: 10) do |http|
        http.post(uri.path, body, headers)
      end
      return answer.body if answer.code == '202'
      raise "#{answer.code}: #{answer.body}" unless %w[429 502 503 504].include?(answer.code)

      requested = answer['Retry-After'].to_i
      raise "The server asks you to wait #{requested} s. Run this again after that." if requested > 60

      pause = [pause, requested].max
    rescue IOError, SystemCallError, SocketError, Timeout::Error, Net::ProtocolError, OpenSSL::SSL::SSLError
      # No response, or an incomplete one.
    end
    sleep pause
  end
  raise 'No response. Run it again: it sends the same request ID.'
end

begin
  puts place_call(*ARGV)
rescue RuntimeError => e
  abort e.message
end
