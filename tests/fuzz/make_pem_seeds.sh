#!/usr/bin/env bash
# Writes the seeds of the pem fuzzer: make_pem_seeds.sh FOLDER. Needs openssl. The keys are new each time, and of nothing.
set -euo pipefail
folder=$(realpath -m "$1")
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# pair NAME ARGUMENT...: NAME.key and NAME.crt, a certificate that signs itself.
pair() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 7300 -keyout "$1.key" -out "$1.crt" "${@:2}" 2>/dev/null
}
# text FILE: its content as a string of text format.
text() { printf '"%s"' "$(sed ':a;N;$!ba;s/\n/\\n/g' "$1")"; }

pair server -subj /CN=server -addext 'subjectAltName=DNS:a.b,IP:127.0.0.1,IP:::1,email:a@b,URI:spiffe://a/b'
pair ca -subj '/O=org/CN=ca' -addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign
pair two_names -utf8 -multivalue-rdn -subj '/CN=a+OU=ünit/CN=b'
pair no_name -subj /
openssl req -x509 -newkey rsa:2048 -nodes -days 7300 -keyout rsa.key -out rsa.crt -subj /CN=rsa 2>/dev/null
openssl genpkey -algorithm ed25519 -out ed25519.key
openssl req -x509 -key ed25519.key -days 7300 -out ed25519.crt -subj /CN=ed25519
openssl x509 -in server.crt -signkey server.key -days 1 -out expired.crt 2>/dev/null
openssl ec -in server.key -out sec1.key 2>/dev/null
openssl pkcs8 -topk8 -in server.key -passout pass:x -out encrypted.key
openssl ec -in server.key -aes128 -passout pass:x -out legacy.key 2>/dev/null
openssl x509 -in ca.crt -trustout -addtrust clientAuth -out trusted.crt

for name in server rsa ed25519 two_names no_name; do cat "$name.crt" "$name.key" >"$folder/$name"; done
cat server.crt ca.crt sec1.key >"$folder/chain"
cat ca.crt trusted.crt ca.crt >"$folder/bundle"
cat expired.crt server.key >"$folder/expired"
cat server.crt encrypted.key >"$folder/encrypted"
cat server.crt legacy.key >"$folder/legacy"
cat server.crt ca.key >"$folder/other_key"
cat server.key >"$folder/key"
head -c 400 server.crt >"$folder/cut"
{ echo "server_key: $(text server.key)"; echo "server_cert: $(text server.crt)"; } >"$folder/ssl_config"
{ cat "$folder/ssl_config"; echo "custom_ca: $(text ca.crt) client_verify: true"; } >"$folder/ssl_config_clients"
{ printf 'server_key: "'; cat server.key; echo '"'; } >"$folder/ssl_config_lines"
