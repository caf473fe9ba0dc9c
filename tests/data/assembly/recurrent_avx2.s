	.text
	.globl	k
	.type	k,@function
k:
.LBB0_235:                              # %"6_for_query_sums_intm.s1.outer"
                                        #   Parent Loop BB0_206 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	vmovaps	(%rdi,%rax), %ymm1
	vfmadd231ps	(%r11,%rax), %ymm1, %ymm0 # ymm0 = (ymm1 * mem) + ymm0
	addq	$32, %rax
	cmpq	%rax, %rcx
	jne	.LBB0_235
.LBB0_247:                              # %"9_for_state_reads.s1.key$x.ko"
                                        #   Parent Loop BB0_206 Depth=1
                                        #     Parent Loop BB0_245 Depth=2
                                        # =>    This Inner Loop Header: Depth=3
	vmovdqa	%ymm0, 384(%rsp)                # 32-byte Spill
	vmovdqa	704(%rsp), %ymm3                # 32-byte Reload
	vmovdqa	1664(%rsp), %ymm2               # 32-byte Reload
	vpcmpgtd	%ymm3, %ymm2, %ymm2
	vextracti128	$1, %ymm2, %xmm7
	vpackssdw	%xmm7, %xmm2, %xmm8
	vmovdqa	1600(%rsp), %ymm2               # 32-byte Reload
	vpcmpgtd	%ymm3, %ymm2, %ymm13
	vmovdqa	%ymm10, %ymm2
	vmovdqa	%ymm11, %ymm10
	vmovdqa	%ymm12, %ymm11
	vmovdqa	%ymm14, %ymm12
	vextracti128	$1, %ymm13, %xmm14
	vmovaps	%ymm1, %ymm0
	vmovaps	1504(%rsp), %ymm1               # 32-byte Reload
	vmovdqa	%ymm9, %ymm6
	vmovdqa	1632(%rsp), %ymm4               # 32-byte Reload
	vpcmpgtd	%ymm3, %ymm4, %ymm9
	vpcmpgtd	%ymm3, %ymm5, %ymm7
	vextracti128	$1, %ymm7, %xmm15
	vpackssdw	%xmm15, %xmm7, %xmm3
	vmovdqa	%xmm3, 608(%rsp)                # 16-byte Spill
	cmpq	%rbx, %rcx
	setl	%dl
	vmovd	%edx, %xmm15
	vpbroadcastb	%xmm15, %xmm15
	vpand	%xmm3, %xmm15, %xmm3
	vpmovzxwd	%xmm3, %ymm3            # ymm3 = xmm3[0],zero,xmm3[1],zero,xmm3[2],zero,xmm3[3],zero,xmm3[4],zero,xmm3[5],zero,xmm3[6],zero,xmm3[7],zero
	vpslld	$31, %ymm3, %ymm3
	vmaskmovps	-96(%r14,%rax,4), %ymm3, %ymm3
	vextracti128	$1, %ymm9, %xmm4
	vpackssdw	%xmm4, %xmm9, %xmm9
	vpand	%xmm15, %xmm9, %xmm4
	vpmovzxwd	%xmm4, %ymm4            # ymm4 = xmm4[0],zero,xmm4[1],zero,xmm4[2],zero,xmm4[3],zero,xmm4[4],zero,xmm4[5],zero,xmm4[6],zero,xmm4[7],zero
	vpslld	$31, %ymm4, %ymm4
	vmaskmovps	-64(%r14,%rax,4), %ymm4, %ymm4
	vpackssdw	%xmm14, %xmm13, %xmm13
	vbroadcastss	(%rsi,%rcx,4), %ymm14
	vpand	%xmm15, %xmm13, %xmm5
	vpmovzxwd	%xmm5, %ymm5            # ymm5 = xmm5[0],zero,xmm5[1],zero,xmm5[2],zero,xmm5[3],zero,xmm5[4],zero,xmm5[5],zero,xmm5[6],zero,xmm5[7],zero
	vpslld	$31, %ymm5, %ymm5
	vmaskmovps	-32(%r14,%rax,4), %ymm5, %ymm5
	vmovaps	384(%rsp), %ymm7                # 32-byte Reload
	vfmadd231ps	%ymm3, %ymm14, %ymm7    # ymm7 = (ymm14 * ymm3) + ymm7
	vmovaps	%ymm7, 384(%rsp)                # 32-byte Spill
	vfmadd231ps	%ymm4, %ymm14, %ymm0    # ymm0 = (ymm14 * ymm4) + ymm0
	vpand	%xmm15, %xmm8, %xmm15
	vpmovzxwd	%xmm15, %ymm15          # ymm15 = xmm15[0],zero,xmm15[1],zero,xmm15[2],zero,xmm15[3],zero,xmm15[4],zero,xmm15[5],zero,xmm15[6],zero,xmm15[7],zero
	vpslld	$31, %ymm15, %ymm15
	vmaskmovps	(%r14,%rax,4), %ymm15, %ymm15
	vfmadd231ps	%ymm14, %ymm5, %ymm1    # ymm1 = (ymm5 * ymm14) + ymm1
	vfmadd231ps	%ymm14, %ymm15, %ymm6   # ymm6 = (ymm15 * ymm14) + ymm6
	vbroadcastss	-4(%r8,%rcx,4), %ymm14
	vfmadd231ps	%ymm3, %ymm14, %ymm2    # ymm2 = (ymm14 * ymm3) + ymm2
	vfmadd231ps	%ymm4, %ymm14, %ymm10   # ymm10 = (ymm14 * ymm4) + ymm10
	vfmadd231ps	%ymm5, %ymm14, %ymm11   # ymm11 = (ymm14 * ymm5) + ymm11
	cmpq	%rdi, %rcx
	setl	%dl
	vmovd	%edx, %xmm3
	vpbroadcastb	%xmm3, %xmm3
	vpand	608(%rsp), %xmm3, %xmm4         # 16-byte Folded Reload
	vpmovzxwd	%xmm4, %ymm4            # ymm4 = xmm4[0],zero,xmm4[1],zero,xmm4[2],zero,xmm4[3],zero,xmm4[4],zero,xmm4[5],zero,xmm4[6],zero,xmm4[7],zero
	vpslld	$31, %ymm4, %ymm4
	vmaskmovps	-96(%r12,%rax,4), %ymm4, %ymm7
	vfmadd231ps	%ymm15, %ymm14, %ymm12  # ymm12 = (ymm14 * ymm15) + ymm12
	vmovaps	%ymm12, %ymm14
	vmovaps	%ymm11, %ymm12
	vmovaps	%ymm10, %ymm11
	vmovaps	%ymm2, %ymm10
	vpand	%xmm3, %xmm9, %xmm4
	vmovaps	%ymm6, %ymm9
	vmovaps	%ymm1, %ymm6
	vmovaps	%ymm0, %ymm1
	vmovaps	384(%rsp), %ymm0                # 32-byte Reload
	vpand	%xmm3, %xmm13, %xmm5
	vpand	%xmm3, %xmm8, %xmm2
	vbroadcastss	4(%rsi,%rcx,4), %ymm3
	vfmadd231ps	%ymm7, %ymm3, %ymm0     # ymm0 = (ymm3 * ymm7) + ymm0
	vpmovzxwd	%xmm4, %ymm4            # ymm4 = xmm4[0],zero,xmm4[1],zero,xmm4[2],zero,xmm4[3],zero,xmm4[4],zero,xmm4[5],zero,xmm4[6],zero,xmm4[7],zero
	vpslld	$31, %ymm4, %ymm4
	vmaskmovps	-64(%r12,%rax,4), %ymm4, %ymm4
	vpmovzxwd	%xmm5, %ymm5            # ymm5 = xmm5[0],zero,xmm5[1],zero,xmm5[2],zero,xmm5[3],zero,xmm5[4],zero,xmm5[5],zero,xmm5[6],zero,xmm5[7],zero
	vpslld	$31, %ymm5, %ymm5
	vmaskmovps	-32(%r12,%rax,4), %ymm5, %ymm5
	vfmadd231ps	%ymm4, %ymm3, %ymm1     # ymm1 = (ymm3 * ymm4) + ymm1
	vfmadd231ps	%ymm3, %ymm5, %ymm6     # ymm6 = (ymm5 * ymm3) + ymm6
	vmovaps	%ymm6, 1504(%rsp)               # 32-byte Spill
	vpmovzxwd	%xmm2, %ymm2            # ymm2 = xmm2[0],zero,xmm2[1],zero,xmm2[2],zero,xmm2[3],zero,xmm2[4],zero,xmm2[5],zero,xmm2[6],zero,xmm2[7],zero
	vpslld	$31, %ymm2, %ymm2
	vmaskmovps	(%r12,%rax,4), %ymm2, %ymm2
	vfmadd231ps	%ymm3, %ymm2, %ymm9     # ymm9 = (ymm2 * ymm3) + ymm9
	vbroadcastss	(%r8,%rcx,4), %ymm3
	vfmadd231ps	%ymm7, %ymm3, %ymm10    # ymm10 = (ymm3 * ymm7) + ymm10
	vfmadd231ps	%ymm4, %ymm3, %ymm11    # ymm11 = (ymm3 * ymm4) + ymm11
	vfmadd231ps	%ymm5, %ymm3, %ymm12    # ymm12 = (ymm3 * ymm5) + ymm12
	vmovdqa	1376(%rsp), %ymm5               # 32-byte Reload
	vfmadd231ps	%ymm2, %ymm3, %ymm14    # ymm14 = (ymm3 * ymm2) + ymm14
	addq	$2, %rcx
	addq	%r9, %rax
	cmpq	%rcx, %r13
	jne	.LBB0_247
# %bb.240:
	retq
.Lfunc_end0:
	.size	k, .Lfunc_end0-k
