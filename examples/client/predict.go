// Sends one Predict call to a model server. docs/clients.md has the command that makes the package pb.
//
//	client [--target HOST:PORT] [--tls-ca FILE [--tls-name NAME] [--tls-cert FILE --tls-key FILE]]
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"client/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

var (
	target  = flag.String("target", "127.0.0.1:8500", "address of the server")
	tlsCA   = flag.String("tls-ca", "", "certificates that the server's is signed by; turns TLS on")
	tlsName = flag.String("tls-name", "", "name in the server's certificate, where the target has another")
	tlsCert = flag.String("tls-cert", "", "own certificate")
	tlsKey  = flag.String("tls-key", "", "its key")
)

// security is TLS as the flags say, or plain text.
func security() grpc.DialOption {
	if *tlsCA == "" {
		if *tlsName != "" || *tlsCert != "" || *tlsKey != "" {
			log.Fatal("--tls-name, --tls-cert and --tls-key need --tls-ca")
		}
		return grpc.WithInsecure()
	}
	text, err := os.ReadFile(*tlsCA)
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: *tlsName}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		log.Fatalf("--tls-ca %s: no certificate", *tlsCA)
	}
	if *tlsCert != "" || *tlsKey != "" {
		own, err := tls.LoadX509KeyPair(*tlsCert, *tlsKey)
		if err != nil {
			log.Fatalf("--tls-cert, --tls-key: %v", err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return grpc.WithTransportCredentials(credentials.NewTLS(config))
}

func main() {
	flag.Parse()
	// gRPC's clients refuse replies of more than 4 MiB unless told to take them.
	channel, err := grpc.Dial(*target, security(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	shape := &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: 1}, {Size: 784}}}
	request := &pb.PredictRequest{
		ModelSpec: &pb.ModelSpec{Name: "mnist_beginner"},
		Inputs: map[string]*pb.TensorProto{ // the server repeats the last value as needed
			"input": {Dtype: pb.DataType_DT_FLOAT, TensorShape: shape, FloatVal: []float32{0}},
		},
	}
	reply := &pb.PredictResponse{}
	if err := channel.Invoke(ctx, "/tensorflow.serving.PredictionService/Predict", request, reply); err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Outputs["softmax"].FloatVal)
}
