
E
PlaceholderPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
 
AbsAbsPlaceholder*
T0

NegNegAbs*
T0

ExpExpNeg*
T0

LogLogExp*
T0

SqrtSqrtLog*
T0

RsqrtRsqrtSqrt*
T0
 
SquareSquareRsqrt*
T0

TanhTanhSquare*
T0
!
SigmoidSigmoidTanh*
T0

ReluReluSigmoid*
T0

Relu6Relu6Relu*
T0

EluEluRelu6*
T0

SeluSeluElu*
T0
#
SoftplusSoftplusSelu*
T0
'
SoftsignSoftsignSoftplus*
T0

ErfErfSoftsign*
T0

FloorFloorErf*
T0

CeilCeilFloor*
T0

RoundRoundCeil*
T0

RintRintRound*
T0

SignSignRint*
T0

SinSinSign*
T0

CosCosSin*
T0

TanTanCos*
T0

AsinAsinTan*
T0

AcosAcosAsin*
T0

AtanAtanAcos*
T0

SinhSinhAtan*
T0

CoshCoshSinh*
T0

AsinhAsinhCosh*
T0

AcoshAcoshAsinh*
T0

AtanhAtanhAcosh*
T0
(

Reciprocal
ReciprocalAtanh*
T0
)
OnesLikeOnesLike
Reciprocal*
T0
)
	ZerosLike	ZerosLikeOnesLike*
T0
:
	LeakyRelu	LeakyRelu	ZerosLike*
T0*
alpha%š™™>